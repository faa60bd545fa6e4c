"""What Prometheus is told: requests, jobs, and how old the prices are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from planner.service.jobs import Jobs

_STATES = ("queued", "running", "done", "failed", "cancelled")


class Metrics:
    """The figures of one server process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        names = ("method", "route", "status")
        self.requests = Counter("planner_http_requests", "Requests answered", names, registry=self.registry)
        self.seconds = Histogram(
            "planner_http_request_seconds",
            "Seconds until the answer was whole",
            ("route",),
            buckets=(0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10),
            registry=self.registry,
        )
        self.refused = Counter(
            "planner_http_refused", "Requests refused at the door", ("why",), registry=self.registry
        )
        self.inside = Gauge("planner_http_inside", "Requests that are being answered", registry=self.registry)
        self.jobs = Gauge("planner_jobs", "Jobs by state", ("state",), registry=self.registry)
        self.price_age = Gauge(
            "planner_newest_price_age_seconds",
            "Age of the newest stored price; absent where none is stored",
            ("provider",),
            registry=self.registry,
        )

    def text(self, jobs: Jobs) -> bytes:
        """Everything in Prometheus' text form."""
        counts = jobs.counts()
        for state in _STATES:
            self.jobs.labels(state).set(counts.get(state, 0))
        self._ages(jobs)
        return generate_latest(self.registry)

    def _ages(self, jobs: Jobs) -> None:
        at = datetime.now(UTC)
        newest = "SELECT provider, max(observed_at) AS newest FROM latest GROUP BY provider"
        for row in jobs.state.rows(newest):
            age = (at - datetime.fromisoformat(row["newest"])).total_seconds()
            self.price_age.labels(row["provider"]).set(max(age, 0.0))
