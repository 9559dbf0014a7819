"""The dialects of model servers: how each is recognised, what it is sent, what its words mean.

What holds for every engine is in `edits`; here is only what differs. A dialect is data.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

from msgspec import Struct

from cheapgpu.core.messages import FinishReason

Limit = Literal["max_completion_tokens", "max_tokens"]

_NONE: Final[Mapping[str, FinishReason]] = MappingProxyType({})


class Dialect(Struct, frozen=True, kw_only=True):
    """One way of speaking the OpenAI Chat API."""

    name: str
    #: The product, as people call it.
    title: str
    #: The members that bound the answer, as the engine honours them.
    limits: tuple[Limit, ...] = ("max_completion_tokens",)
    #: Finish reasons that mean the same as one of the profile's, by the engine's own documentation.
    synonyms: Mapping[str, FinishReason] = _NONE
    #: Whether a plain answer is asked for as a stream and collected, because the engine would go on
    #: with a plain one after its buyer has left.
    collects: bool = False
    #: Why its streams cannot be passed on; "" where they can.
    no_streams: str = ""
    #: The `owned_by` of its model list by which it is recognised.
    owned_by: str = ""
    #: What a supplier should know, a sentence each.
    notes: tuple[str, ...] = ()


_OLDER: Final[tuple[Limit, ...]] = ("max_tokens",)
_EITHER: Final[tuple[Limit, ...]] = ("max_completion_tokens", "max_tokens")

_TABLE: Final = (
    Dialect(
        name="vllm",
        title="vLLM",
        owned_by="vllm",
        notes=("it queues without end: at_once bounds what waits in it",),
    ),
    Dialect(
        name="llama.cpp",
        title="llama.cpp server",
        owned_by="llamacpp",
        notes=(
            "it answers as any model that it is asked for, so only declared ids reach it",
            "its context is divided by its slots; when it fills, an answer ends with length",
        ),
    ),
    Dialect(
        name="sglang",
        title="SGLang",
        owned_by="sglang",
        notes=("some releases go on after a buyer has left: keep at_once near what it runs",),
    ),
    Dialect(
        name="ollama",
        title="Ollama",
        owned_by="library",
        limits=_OLDER,
        notes=(
            "it cuts a prompt longer than its context without a word: set OLLAMA_CONTEXT_LENGTH",
            "it has no key of its own: keep it on loopback",
        ),
    ),
    Dialect(
        name="lm-studio",
        title="LM Studio",
        owned_by="organization_owner",
        limits=_EITHER,
        notes=("load the model first: a first request waits in silence while it loads",),
    ),
    Dialect(
        name="tgi",
        title="Text Generation Inference",
        limits=_OLDER,
        synonyms=MappingProxyType({"eos_token": "stop", "stop_sequence": "stop"}),
    ),
    Dialect(
        name="transformers",
        title="transformers serve",
        limits=_OLDER,
        collects=True,
        notes=(
            "it sends no [DONE]; one is written after a clean end",
            "a prompt longer than its context can hang it: keep at_once and prompts small",
        ),
    ),
    Dialect(
        name="litellm",
        title="LiteLLM proxy",
        collects=True,
        notes=("it passes the limit on unchanged: what is behind it must honour it",),
    ),
    Dialect(
        name="llama-cpp-python",
        title="llama-cpp-python server",
        owned_by="me",
        limits=_OLDER,
        no_streams="its streams never report usage, and counting tokens in its place would be "
        "inventing it",
        notes=("it works on one request at a time: set at_once to 1",),
    ),
    Dialect(
        name="openai",
        title="any other server of the OpenAI Chat API",
        notes=("nothing is taken for granted beyond what holds for every engine",),
    ),
)

#: By name.
DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType({each.name: each for each in _TABLE})
_BY_OWNER: Final = {each.owned_by: each for each in _TABLE if each.owned_by}


def recognise(fields: Mapping[bytes, bytes], models: list[dict[str, Any]]) -> Dialect:
    """Tell an engine by its own answer to `GET /v1/models`: header fields and listed models.

    What is not recognised speaks `openai`.
    """
    if fields.get(b"server", b"").lower().startswith(b"llama.cpp"):
        return DIALECTS["llama.cpp"]
    if any(name.startswith(b"x-litellm-") for name in fields):
        return DIALECTS["litellm"]
    for model in models:
        owner = model.get("owned_by")
        if isinstance(owner, str) and owner in _BY_OWNER:
            return _BY_OWNER[owner]
        if owner == model.get("id") and model.get("created") == 0:
            return DIALECTS["tgi"]
        if isinstance(model.get("created"), float):
            return DIALECTS["transformers"]
    return DIALECTS["openai"]
