"""What happened, in numbers: counted on the way, shown to Prometheus when it asks."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from cheapgpu.endpoint.engine import ServedModel
from cheapgpu.endpoint.relay import Record

#: Why a request was refused before it reached an engine.
Why = Literal["message", "key", "request", "capacity"]

#: Upper bounds of the histograms, in seconds.
_FIRST: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_TOTAL: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


class Histogram:
    """Counts of durations by upper bound."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def buckets(self) -> tuple[list[tuple[str, float]], float]:
        """Cumulative counts by bound, as Prometheus wants them, and the sum in seconds."""
        total = 0
        buckets: list[tuple[str, float]] = []
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self._counts, strict=True):
            total += count
            buckets.append((bound, total))
        return buckets, self._sum


class Counters(Collector):
    """Everything that is counted; labels are declared models and fixed words only."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self._models = models
        self._answers: Counter[tuple[str, str, str]] = Counter()
        self._refused: Counter[str] = Counter()
        self._edits: Counter[tuple[str, str]] = Counter()
        self._tokens: Counter[tuple[str, str]] = Counter()
        self._first = {model.id: Histogram(_FIRST) for model in models}
        self._total = {model.id: Histogram(_TOTAL) for model in models}

    def refused(self, why: Why) -> None:
        """Count a request that did not reach an engine."""
        self._refused[why] += 1

    def answered(self, record: Record) -> None:
        """Count an answer that has ended."""
        model = record.model
        mode = "stream" if record.stream else "plain"
        self._answers[model, mode, record.outcome] += 1
        for edit, count in record.edits.items():
            self._edits[model, edit] += count
        if record.outcome == "complete":
            # Of other outcomes no count is believed.
            self._tokens[model, "prompt"] += record.prompt_tokens or 0
            self._tokens[model, "completion"] += record.completion_tokens or 0
        if record.first_ms is not None:
            self._first[model].add(record.first_ms / 1000)
        self._total[model].add(record.total_ms / 1000)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric, as prometheus-client asks."""
        yield from self._counts()
        for name, about, histograms in (
            ("first_byte", "to the first byte of an answer", self._first),
            ("answer", "to the end of an answer", self._total),
        ):
            family = HistogramMetricFamily(
                f"cheapgpu_endpoint_{name}_seconds",
                f"Seconds from a request {about}.",
                labels=["model"],
            )
            for label, histogram in histograms.items():
                buckets, total = histogram.buckets()
                family.add_metric([label], buckets, total)
            yield family
        in_flight = GaugeMetricFamily(
            "cheapgpu_endpoint_in_flight", "Requests at an engine.", labels=["upstream"]
        )
        ready = GaugeMetricFamily(
            "cheapgpu_endpoint_ready", "Whether a model can be asked for.", labels=["model"]
        )
        for upstream in {model.upstream.name: model.upstream for model in self._models}.values():
            in_flight.add_metric([upstream.name], upstream.in_flight)
        for model in self._models:
            ready.add_metric([model.id], int(model.upstream.ready))
        yield in_flight
        yield ready

    def _counts(self) -> Iterator[Metric]:
        answers = CounterMetricFamily(
            "cheapgpu_endpoint_answers",
            "Answers that ended, by outcome.",
            labels=["model", "mode", "outcome"],
        )
        refused = CounterMetricFamily(
            "cheapgpu_endpoint_refused", "Requests that reached no engine.", labels=["why"]
        )
        edits = CounterMetricFamily(
            "cheapgpu_endpoint_edits", "Honest edits of answers.", labels=["model", "edit"]
        )
        tokens = CounterMetricFamily(
            "cheapgpu_endpoint_tokens",
            "Tokens of complete answers, as the engines reported them.",
            labels=["model", "side"],
        )
        for family, counts in (
            (answers, self._answers),
            (edits, self._edits),
            (tokens, self._tokens),
        ):
            for labels, count in counts.items():
                family.add_metric(list(labels), count)
        for why, count in self._refused.items():
            refused.add_metric([why], count)
        yield from (answers, refused, edits, tokens)
