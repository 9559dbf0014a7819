"""The engine's own process: llama.cpp's HTTP server, run by xllamacpp while its parent lives.

It is run as a file, not as a module, so that nothing of the package is imported on the way to the
server. Of its three streams, each says one thing:

- stdin brings one line of JSON with the options, the API key among them; after that it stays open,
  and its end means that the parent has gone.
- stdout takes one line of JSON: `{"address": …}` once the model is loaded, or `{"problem": …}`.
- stderr takes what llama.cpp says while it starts. From then on it is closed: later messages could
  quote a prompt.
"""

import json
import os
import select
import signal
import sys
import threading
import time
from typing import Any

#: Bytes of the line of options; a longer one is not ours.
_OPTIONS_BYTES = 65_536
#: Characters of a fact that is reported.
_FACT_CHARACTERS = 2000
#: Seconds that SIGTERM has to end this process.
_SIGTERM_SECONDS = 1.0
#: prctl's number for "send me this signal when my parent dies" (Linux).
_PR_SET_PDEATHSIG = 1
#: llama.cpp's verbosity at which it reports errors only.
_ERRORS_ONLY = 1


def main() -> None:
    """Serve until killed or until stdin ends; exit status 1 after a problem was reported."""
    # Ctrl-C reaches the whole process group: the parent decides when the engine stops.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    report = os.dup(1)
    os.dup2(2, 1)  # what native code prints must not mix with the report
    line = sys.stdin.buffer.readline(_OPTIONS_BYTES)
    # The parent may have gone while it wrote, or before _die_with_parent took effect.
    if not line.endswith(b"\n") or select.select([0], [], [], 0)[0]:
        sys.exit(1)
    watch = threading.Thread(target=_exit_at_end_of_stdin, daemon=True)
    watch.start()
    try:
        server = _serve(json.loads(line))
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == "xllamacpp"
        problem = "not installed" if absent else "cannot be loaded"
        _report(report, problem=problem, detail=str(error))
        sys.exit(1)
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent tells the user
        _report(report, problem="did not start", detail=f"{type(error).__name__}: {error}")
        sys.exit(1)
    _silence()
    _report(report, address=server.listening_address)
    watch.join()


def _report(to: int, **facts: str) -> None:
    """Tell the parent, once."""
    facts = {name: fact[:_FACT_CHARACTERS] for name, fact in facts.items()}
    os.write(to, json.dumps(facts).encode() + b"\n")
    os.close(to)


def _silence() -> None:
    """Send all that is printed from now on nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def _die_with_parent() -> None:
    """Have the kernel end this process when its parent dies, where the kernel can (Linux).

    The watch on stdin does the same everywhere, but it cannot run while a model is being loaded:
    xllamacpp holds the interpreter's lock for that long.
    """
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - only here

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _exit_at_end_of_stdin() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)  # at once: nothing here needs an orderly end
    time.sleep(_SIGTERM_SECONDS)
    os._exit(1)  # someone ignores SIGTERM for us


def _serve(options: dict[str, Any]) -> Any:  # noqa: ANN401 - xllamacpp has no types
    """Start llama.cpp's server on 127.0.0.1; it holds the address in `listening_address`."""
    import xllamacpp  # noqa: PLC0415 - its absence is reported, not raised

    params = xllamacpp.CommonParams()
    params.model.path = options["gguf"]
    params.model_alias = {options["model"]}
    params.api_keys = [options["api_key"]]
    params.port = options["port"]  # the host is 127.0.0.1 by default; the parent checks it
    params.n_parallel = options["slots"]
    params.n_ctx = options["context_tokens"] * options["slots"]  # llama.cpp divides it by the slots
    if options["threads"] is not None:
        params.cpuparams.n_threads = options["threads"]
        params.cpuparams_batch.n_threads = options["threads"]
    if options["gpu_layers"] is not None:
        params.n_gpu_layers = options["gpu_layers"]
    # Fitting a model into a GPU's memory reads the model twice: not where there is no GPU.
    params.fit_params = options["gpu_layers"] is None and _has_gpu(xllamacpp)
    params.verbosity = _ERRORS_ONLY
    params.offline = True  # a model is a file here, never a download
    params.ui = False
    params.endpoint_slots = False  # it would show prompts
    # No second copy of old prompts in RAM: it may grow to 8 GiB by default.
    params.cache_ram_mib = 0
    params.cache_idle_slots = False
    return xllamacpp.Server(params)


def _has_gpu(xllamacpp: Any) -> bool:  # noqa: ANN401 - xllamacpp has no types
    return any(device["type"].name.endswith("GPU") for device in xllamacpp.get_device_info())


if __name__ == "__main__":
    main()
