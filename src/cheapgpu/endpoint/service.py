"""What the endpoint answers to whom: path, key, body, request, capacity, in this order.

Profile, "Endpoint" and "Request". Whatever is outside the profile is refused here, and never
reaches an engine.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from cheapgpu.core.request import ChatRequest, Refusal, decode_request, refuse_content_type
from cheapgpu.endpoint.counters import Counters, Why
from cheapgpu.endpoint.engine import RETRY_SECONDS, ServedModel, Upstream
from cheapgpu.endpoint.failures import FAILURES, Reason, error_body
from cheapgpu.endpoint.keys import Keyring
from cheapgpu.endpoint.relay import JSON, Record, Refused, Relay, Times
from cheapgpu.wire.client import Pool
from cheapgpu.wire.message import Lines, RequestHead, Response
from cheapgpu.wire.server import Call
from cheapgpu.wire.sweeper import Sweeper

HEALTH_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"
_JSON_TYPE: Final = b"application/json"
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
        log: Callable[[Record | Refused], None] | None,
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
            return None if head.method in ("GET", "HEAD") else self._refuse_method("GET, HEAD")
        if head.path not in (self._path, self._models_path):
            return self._refuse("message", 404, f"the path of inference is {self._path}")
        name = self.keys.name_of(head.fields.get(b"authorization"))
        if name is None:
            message = "a valid bearer key is needed: Authorization: Bearer KEY"
            return self._refuse("key", 401, message, code="invalid_api_key", lines=_CHALLENGE)
        head.principal = name
        wanted = "POST" if head.path == self._path else "GET"
        return None if head.method == wanted else self._refuse_method(wanted, name)

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
        return self._refuse("message", status, reason)

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
        """Answer a request for an answer: refuse it, or send it to its engine."""
        key = call.head.principal
        content_type = call.head.fields.get(b"content-type", b"")
        refusal = None
        if content_type != _JSON_TYPE:
            refusal = refuse_content_type(content_type.decode("latin-1") or None)
        request = refusal or decode_request(call.body)
        if isinstance(request, Refusal):
            code = request.rule.removeprefix("refuse/")
            message, param = request.message, request.param
            call.respond(self._refuse("request", 400, message, code=code, param=param, key=key))
            return
        model = self._model_for(request, key)
        if isinstance(model, Response):
            call.respond(model)
            return
        model.upstream.in_flight += 1
        relay = Relay(call, request, model, self._times, self._sweeper, self, self._clock)
        self._relays.add(relay)
        relay.begin(self._pool, request)

    def _model_for(self, request: ChatRequest, key: str) -> ServedModel | Response:
        """The model that is asked for; or a refusal, of what is not served, or not now."""
        model = self._models.get(request.model)
        if model is None:
            message = "model: this endpoint serves no such model"
            code, param, status = "model_not_found", "model", 404
        elif request.max_completion_tokens > model.ceiling:
            limit = request.max_completion_tokens
            message = f"max_completion_tokens: is {limit}; this model admits up to {model.ceiling}"
            code, param, status = "ceiling", "max_completion_tokens", 400
        elif request.stream and model.upstream.plain_only:
            message = "stream: this model gives plain answers only; send false"
            code, param, status = "plain_only", "stream", 400
        else:
            return self._not_now(model.upstream, key) or model
        return self._refuse("request", status, message, code=code, param=param, key=key)

    def _not_now(self, upstream: Upstream, key: str) -> Response | None:
        """Refuse a request for which there is no room, before inference."""
        reason: Reason
        if self.stopping:
            reason = "stopping"
        elif not upstream.ready:
            reason = "engine-not-ready"
        elif upstream.in_flight >= upstream.at_once:
            reason = "engine-busy"
        else:
            return None
        status = 429 if reason == "engine-busy" else 503
        lines = JSON + b"retry-after: %d\r\n" % RETRY_SECONDS
        message = FAILURES[reason][1]
        return self._refuse("capacity", status, message, code=reason, key=key, lines=lines)

    def _refuse(  # noqa: PLR0913 -- the parts of a refusal
        self,
        why: Why,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        key: str = "",
        lines: Lines = JSON,
    ) -> Response:
        """A refusal, counted and logged."""
        self._counters.refused(why)
        if self._log is not None:
            self._log(Refused(at=time.time(), key=key, status=status, why=code or message))
        return Response(status, error_body(status, message, code=code, param=param), lines)

    def _refuse_method(self, allowed: str, key: str = "") -> Response:
        lines = JSON + f"allow: {allowed}\r\n".encode()
        return self._refuse("message", 405, f"the method here is {allowed}", key=key, lines=lines)

    def _listing(self) -> dict[str, object]:
        """The declared models, as the OpenAI SDKs list them."""
        about = [
            {"id": name, "object": "model", "created": self._since, "owned_by": "cheapgpu"}
            for name in self._models
        ]
        return {"object": "list", "data": about}
