"""CheapGPU: judges, makes and sells chat answers that conform to the OpenAI Chat text profile."""

__version__ = "0.1.0"
