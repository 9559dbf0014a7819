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


class ModelCounters:
    """What is counted of one declared model."""

    __slots__ = ("edits", "first", "plain", "streams", "tokens", "total")

    def __init__(self) -> None:
        #: Answers by outcome.
        self.plain: Counter[str] = Counter()
        self.streams: Counter[str] = Counter()
        self.edits: Counter[str] = Counter()
        #: Of the prompt and of the completion.
        self.tokens: Counter[str] = Counter()
        self.first = Histogram(_FIRST)
        self.total = Histogram(_TOTAL)

    def answered(self, record: Record) -> None:
        """Count an answer that has ended."""
        answers = self.streams if record.stream else self.plain
        answers[record.outcome] += 1
        edits = self.edits
        for edit, count in record.edits.items():
            edits[edit] += count
        if record.outcome == "complete":
            # Of other outcomes no count is believed.
            tokens = self.tokens
            tokens["prompt"] += record.prompt_tokens or 0
            tokens["completion"] += record.completion_tokens or 0
        if record.first_ms is not None:
            self.first.add(record.first_ms / 1000)
        self.total.add(record.total_ms / 1000)


class Counters(Collector):
    """Everything that is counted; labels are declared models and fixed words only."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self._models = models
        self._refused: Counter[str] = Counter()
        self._counts = {model.id: ModelCounters() for model in models}

    def refused(self, why: Why) -> None:
        """Count a request that did not reach an engine."""
        self._refused[why] += 1

    def answered(self, record: Record) -> None:
        """Count an answer that has ended."""
        self._counts[record.model].answered(record)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric, as prometheus-client asks."""
        yield from self._families()
        first = HistogramMetricFamily(
            "cheapgpu_endpoint_first_byte_seconds",
            "Seconds from a request to the first byte of an answer.",
            labels=["model"],
        )
        total = HistogramMetricFamily(
            "cheapgpu_endpoint_answer_seconds",
            "Seconds from a request to the end of an answer.",
            labels=["model"],
        )
        for model_id, counts in self._counts.items():
            first.add_metric([model_id], *counts.first.buckets())
            total.add_metric([model_id], *counts.total.buckets())
        yield from (first, total)
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

    def _families(self) -> Iterator[Metric]:
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
        for model, of_model in self._counts.items():
            for mode, outcomes in (("plain", of_model.plain), ("stream", of_model.streams)):
                for outcome, count in outcomes.items():
                    answers.add_metric([model, mode, outcome], count)
            for edit, count in of_model.edits.items():
                edits.add_metric([model, edit], count)
            for side, count in of_model.tokens.items():
                tokens.add_metric([model, side], count)
        for why, count in self._refused.items():
            refused.add_metric([why], count)
        yield from (answers, refused, edits, tokens)
