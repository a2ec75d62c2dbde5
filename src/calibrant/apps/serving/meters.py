"""What is counted for Prometheus: requests, seconds, answers, money, and how the promise stands."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

ENDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


@dataclass
class Meters:
    """Requests by class of status, and how long they took.

    Examples
    --------
    >>> meters = Meters()
    >>> meters.see(200, 0.02)
    >>> meters.requests["2xx"], list(meters.lines())[5]
    (1, 'calibrant_request_seconds_bucket{le="0.025"} 1')
    """

    requests: Counter[str] = field(default_factory=Counter)
    under_way: int = 0
    seconds: float = 0.0
    _buckets: list[int] = field(default_factory=lambda: [0] * (len(ENDS_S) + 1))

    def see(self, status: int, seconds: float) -> None:
        """Count a request that has been answered."""
        self.requests[f"{status // 100}xx"] += 1
        self.seconds += seconds
        self._buckets[bisect_left(ENDS_S, seconds)] += 1

    def lines(self) -> Iterator[str]:
        """Yield the lines of requests and their seconds."""
        yield from typed("requests_total", "counter", self.requests, "status")
        yield "# TYPE calibrant_request_seconds histogram"
        observed = 0
        for end, count in zip((*map(str, ENDS_S), "+Inf"), self._buckets, strict=True):
            observed += count
            yield f'calibrant_request_seconds_bucket{{le="{end}"}} {observed}'
        yield f"calibrant_request_seconds_sum {self.seconds}"
        yield f"calibrant_request_seconds_count {observed}"


def typed(name: str, kind: str, values: Any, label: str | None = None) -> Iterator[str]:
    """Yield the lines of one number, or of one number by the values of a label."""
    yield f"# TYPE calibrant_{name} {kind}"
    if label is None:
        yield f"calibrant_{name} {values}"
        return
    for key, value in values.items():
        yield f"calibrant_{name}{{{label}={orjson.dumps(key).decode()}}} {value}"


def engine_lines(engine: Any, now: float) -> Iterator[str]:
    """Yield the lines of what an engine has answered and paid, and of its promise."""
    counts, standing = engine.counts, engine.standing
    decisions = {name: counts[name] for name in ("answer", "defer", "degraded")}
    yield from typed("questions_total", "counter", decisions, "decision")
    unrecorded = counts["unrecorded"] + engine.unkept
    for name, value in (
        ("upstream_failures_total", counts["failures"]),
        ("upstream_calls_total", counts["calls"]),
        ("cost_total", engine.cost),
        ("streams_total", counts["streams"]),
        ("first_words_seconds_total", engine.first_words),
        ("unpromised_total", counts["unpromised"]),
        ("unrecorded_total", unrecorded),
    ):
        yield from typed(name, "counter", value)
    knowledge = standing.known
    for name, on in (
        ("shifted", knowledge.shift),
        ("endpoint_changed", knowledge.changed),
        ("promise_expired", knowledge.expired or engine.ended),
        ("promise_suspended", standing.against or engine.ended),
    ):
        yield from typed(name, "gauge", int(on is not None))
    for name in ("unreadable_rows", "unused_labels"):
        yield from typed(name, "gauge", counts[name])
    up = {name: int(item.closed_for(now) == 0) for name, item in engine.breakers.items()}
    yield from typed("endpoint_up", "gauge", up, "model")
