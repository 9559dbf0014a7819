"""The operator's port: metrics for Prometheus, and the health of the endpoint in detail."""

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from cheapgpu.endpoint.access_log import AccessLog
from cheapgpu.endpoint.counters import Counters
from cheapgpu.endpoint.failures import error_body
from cheapgpu.endpoint.relay import JSON
from cheapgpu.endpoint.service import HEALTH_PATH, READY_PATH, Endpoint
from cheapgpu.wire.message import Lines, RequestHead, Response
from cheapgpu.wire.server import Call

METRICS_PATH: Final = "/metrics"
_TEXT: Final[Lines] = b"content-type: %b\r\n" % CONTENT_TYPE_LATEST.encode()


class MetricsService:
    """Answers the operator: who may ask is decided by the address that it listens on."""

    def __init__(self, endpoint: Endpoint, counters: Counters, log: AccessLog | None) -> None:
        self._endpoint = endpoint
        self._registry = CollectorRegistry()
        self._registry.register(counters)
        if log is not None:
            self._registry.register(_LogLosses(log))

    def admit(self, head: RequestHead) -> Response | None:
        """Let the three pages be read, and nothing else."""
        if head.path not in (METRICS_PATH, HEALTH_PATH, READY_PATH):
            return self.refuse(404, f"{METRICS_PATH}, {HEALTH_PATH} and {READY_PATH} are here")
        if head.method not in ("GET", "HEAD"):
            return self.refuse(405, "the method here is GET")
        return None

    def serve(self, call: Call) -> None:
        """Answer with a page."""
        if call.head.path == METRICS_PATH:
            call.respond(Response(200, generate_latest(self._registry), _TEXT))
        elif call.head.path == READY_PATH:
            call.respond(self._endpoint.readiness(detail=True))
        else:
            call.respond(Response(200, b'{"status":"alive"}', JSON))

    def refuse(self, status: int, reason: str) -> Response:
        """A refusal in the error schema."""
        return Response(status, error_body(status, reason), JSON)


class _LogLosses(Collector):
    """Lines of the access log that were not written."""

    def __init__(self, log: AccessLog) -> None:
        self._log = log

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(
            "cheapgpu_endpoint_log_lines_dropped", "Lines of the access log that were not written."
        )
        family.add_metric([], self._log.dropped)
        yield family
