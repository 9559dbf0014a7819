"""What the endpoint answers to whom: path, key, body, request, capacity, in this order.

Profile, "Endpoint" and "Request". Whatever is outside the profile is refused here, and never
reaches an engine.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from cheapgpu.core.request import ChatRequest, Refusal, decode_request, refuse_content_type
from cheapgpu.endpoint.counters import Counters
from cheapgpu.endpoint.engine import RETRY_SECONDS, ServedModel
from cheapgpu.endpoint.failures import FAILURES, Reason, error_body
from cheapgpu.endpoint.keys import Keyring
from cheapgpu.endpoint.relay import JSON, Record, Relay, Times
from cheapgpu.wire.client import Pool
from cheapgpu.wire.message import Lines, RequestHead, Response
from cheapgpu.wire.server import Call
from cheapgpu.wire.sweeper import Sweeper

HEALTH_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"
_COMPLETIONS: Final = "/chat/completions"
_CHALLENGE: Final[Lines] = JSON + b"www-authenticate: Bearer\r\n"
_encode: Final = msgspec.json.Encoder().encode


class Endpoint:
    """The supplier's endpoint: its models, its keys, and the answers in progress."""

    def __init__(  # noqa: PLR0913 -- what it stands on
        self,
        *,
        path: str,
        models: Sequence[ServedModel],
        keys: Keyring,
        times: Times,
        pool: Pool,
        sweeper: Sweeper,
        counters: Counters,
        log: Callable[[Record], None] | None,
        clock: Callable[[], float],
    ) -> None:
        self.keys = keys
        self.stopping = False
        self._path = path
        self._models_path = path.removesuffix(_COMPLETIONS) + "/models"
        self._models: Mapping[str, ServedModel] = {model.id: model for model in models}
        self._times = times
        self._pool = pool
        self._sweeper = sweeper
        self._counters = counters
        self._log = log
        self._clock = clock
        self._relays: set[Relay] = set()
        self._since = int(time.time())

    # What the wire asks.

    def admit(self, head: RequestHead) -> Response | None:
        """Refuse a request by its head alone, or let its body be read."""
        if head.path in (HEALTH_PATH, READY_PATH):
            return None if head.method in ("GET", "HEAD") else _refused_method(b"GET, HEAD")
        if head.path not in (self._path, self._models_path):
            return _refused(404, f"the path of inference is {self._path}")
        name = self.keys.name_of(head.fields.get(b"authorization"))
        if name is None:
            self._counters.refused("key")
            message = "a valid bearer key is needed: Authorization: Bearer KEY"
            return _refused(401, message, code="invalid_api_key", lines=_CHALLENGE)
        head.principal = name
        wanted = "POST" if head.path == self._path else "GET"
        if head.method != wanted:
            return _refused_method(wanted.encode())
        return None

    def serve(self, call: Call) -> None:
        """Answer a whole request."""
        path = call.head.path
        if path == self._path:
            self._infer(call)
        elif path == HEALTH_PATH:
            call.respond(Response(200, b'{"status":"alive"}', JSON))
        elif path == READY_PATH:
            call.respond(self.readiness())
        else:
            call.respond(Response(200, _encode(self._listing()), JSON))

    def refuse(self, status: int, reason: str) -> Response:
        """The refusal of a message that is none, in the error schema."""
        self._counters.refused("message")
        return _refused(status, reason)

    # What it answers.

    def readiness(self, *, detail: bool = False) -> Response:
        """200 if every model can be asked for, else 503; `detail` says why not."""
        ready = not self.stopping and all(m.upstream.ready for m in self._models.values())
        state: dict[str, object] = {"status": "ready" if ready else "not ready"}
        if detail:
            state["models"] = {
                model.id: "ready" if model.upstream.ready else model.upstream.why_not
                for model in self._models.values()
            }
        return Response(200 if ready else 503, _encode(state), JSON)

    def ended(self, relay: Relay, record: Record) -> None:
        """Take note of an answer that has ended."""
        self._relays.discard(relay)
        relay.model.upstream.in_flight -= 1
        self._counters.answered(record)
        if self._log is not None:
            self._log(record)

    def stop_all(self) -> None:
        """Give up every answer that is in progress."""
        for relay in tuple(self._relays):
            relay.stop()

    def _infer(self, call: Call) -> None:
        refusal: Refusal | ChatRequest | None = refuse_content_type(
            call.head.fields.get(b"content-type", b"").decode("latin-1") or None
        )
        request = refusal or decode_request(call.body)
        if isinstance(request, Refusal):
            self._counters.refused("request")
            code = request.rule.removeprefix("refuse/")
            call.respond(_refused(400, request.message, code=code, param=request.param))
            return
        refused = self._refusal(request)
        if refused is not None:
            call.respond(refused)
            return
        model = self._models[request.model]
        dialect = model.upstream.dialect
        assert dialect is not None  # noqa: S101 -- a ready upstream has one
        model.upstream.in_flight += 1
        relay = Relay(call, request, model, dialect, self._times, self._sweeper, self, self._clock)
        self._relays.add(relay)
        relay.begin(self._pool, request)

    def _refusal(self, request: ChatRequest) -> Response | None:
        """Refuse a request within the profile that this endpoint does not serve, or not now."""
        model = self._models.get(request.model)
        if model is None:
            self._counters.refused("request")
            message = "model: this endpoint serves no such model"
            return _refused(404, message, code="model_not_found", param="model")
        limit = request.max_completion_tokens
        if limit > model.ceiling:
            self._counters.refused("request")
            message = f"max_completion_tokens: is {limit}; this model admits up to {model.ceiling}"
            return _refused(400, message, code="ceiling", param="max_completion_tokens")
        upstream = model.upstream
        if request.stream and upstream.plain_only:
            self._counters.refused("request")
            message = "stream: this model gives plain answers only; send false"
            return _refused(400, message, code="plain_only", param="stream")
        if self.stopping:
            return self._not_now("stopping")
        if not upstream.ready:
            return self._not_now("engine-not-ready")
        if upstream.in_flight >= upstream.at_once:
            return self._not_now("engine-busy", 429)
        return None

    def _not_now(self, reason: Reason, status: int = 503) -> Response:
        self._counters.refused("capacity")
        lines = JSON + b"retry-after: %d\r\n" % RETRY_SECONDS
        return _refused(status, FAILURES[reason][1], code=reason, lines=lines)

    def _listing(self) -> dict[str, object]:
        """The declared models, as the OpenAI SDKs list them."""
        about = [
            {"id": name, "object": "model", "created": self._since, "owned_by": "cheapgpu"}
            for name in self._models
        ]
        return {"object": "list", "data": about}


def _refused(
    status: int,
    message: str,
    *,
    code: str | None = None,
    param: str | None = None,
    lines: Lines = JSON,
) -> Response:
    return Response(status, error_body(status, message, code=code, param=param), lines)


def _refused_method(allowed: bytes) -> Response:
    message = f"the method here is {allowed.decode()}"
    return _refused(405, message, lines=JSON + b"allow: %b\r\n" % allowed)
