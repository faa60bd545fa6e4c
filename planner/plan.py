"""Plan: the answer to one request, as records, as JSON and as pandas frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from .answer import SCHEMA_VERSION, Assumption, Excluded, Job, PlanOption, moment
from .errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from .explain import Explanation


@dataclass(frozen=True, slots=True)
class Plan:
    """Every way to run one job that was kept, best first.

    options: every non-dominated variant and the cheapest of each hardware × count × purchase model × region;
        the front by cost, then the dominated rows by cost. evaluated: how many variants were compared.
    as_of: prices observed up to then were used. oldest_price: the oldest of those in `options`.
    discount_rate: a year's, of present values; costs are not discounted. [1/y]
    snapshot: names the stored prices that were read.
    request: what was asked for, as OptimizeRequest.to_json.
    """

    job: Job
    as_of: datetime
    currency: str
    options: tuple[PlanOption, ...]
    excluded: tuple[Excluded, ...]
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]
    seed: int
    evaluated: int
    snapshot: str
    limits: dict[str, str]
    discount_rate: Decimal
    request: Mapping[str, Any] = field(default_factory=dict)

    @property
    def front(self) -> tuple[PlanOption, ...]:
        """The options that no other is both cheaper and faster than; cheapest first."""
        return tuple(option for option in self.options if option.pareto)

    @property
    def oldest_price(self) -> datetime | None:
        """When the oldest price of any option was observed."""
        return min((used.observed_at for option in self.options for used in option.prices), default=None)

    def option(self, which: int | str) -> PlanOption:
        """The option of that rank or id; a hardware id means its best-ranked option.

        Raises UsageError naming the nearest.
        """
        wanted = str(which).strip()
        for option in self.options:
            if wanted in (str(option.rank), option.id):
                return option
        for option in self.options:
            if wanted == option.hardware:
                return option
        from planner.models.errors import nearest_names

        names = [name for option in self.options for name in (option.id, option.hardware)]
        near = nearest_names(wanted, names)
        hint = f' Did you mean "{near[0]}"?' if near else ""
        raise UsageError(
            f'no option "{wanted}" in this plan (ranks 1 to {len(self.options)}).{hint}', "explain"
        )

    def explain(self, which: int | str) -> Explanation:
        """Every term of one option's cost and time, with unit, formula and source. Raises UsageError."""
        from .explain import explain

        return explain(self, which)

    @property
    def pareto(self) -> pd.DataFrame:
        """The front as a frame: option, cost_<currency>_p50, time_hours_p50, … (needs pandas)."""
        frame = self.options_frame
        return frame[frame["pareto"]].reset_index(drop=True)

    @property
    def options_frame(self) -> pd.DataFrame:
        """All options as a frame, one row each; money as float for plotting (needs pandas)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise UsageError(
                "frames need pandas, which is not installed: pip install 'training-planner[frames]'", "pandas"
            ) from error

        return pd.DataFrame.from_records([self._row(option) for option in self.options])

    def _row(self, option: PlanOption) -> dict[str, Any]:
        currency = self.currency.lower()
        cost: dict[str, Decimal] = {"p10": option.cost.p10, "p50": option.cost.p50, "p90": option.cost.p90}
        return {
            "rank": option.rank,
            "option": option.id,
            "provider": option.provider,
            "hardware": option.hardware,
            "count": option.count,
            "gpu": option.gpu,
            "gpu_count": option.gpu_count,
            "purchase_model": option.purchase_model,
            "region": option.region,
            **{f"cost_{currency}_{name}": float(amount) for name, amount in cost.items()},
            "time_hours_p10": float(option.time_hours.p10),
            "time_hours_p50": float(option.time_hours.p50),
            "time_hours_p90": float(option.time_hours.p90),
            f"cash_upfront_{currency}": float(option.cash_upfront),
            "precision": option.throughput.precision,
            "micro_batch_size": option.throughput.micro_batch_size,
            "accumulation": option.throughput.accumulation,
            "samples_per_second": option.throughput.value,
            "memory_used_share": option.memory.used_share,
            "pareto": option.pareto,
            "dominated_by": option.dominated_by,
        }

    def to_json(self, created_at: datetime | None = None) -> dict[str, Any]:
        """Plain values, always the same for the same plan. created_at is written only when given."""
        body: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "kind": "optimize"}
        if created_at is not None:
            body["created_at"] = moment(created_at)
        return body | {
            "as_of": moment(self.as_of),
            "snapshot": self.snapshot,
            "currency": self.currency,
            "tax": "excluded",
            "seed": self.seed,
            "discount_rate": float(self.discount_rate),
            "job": self.job.to_json(),
            "limits": self.limits,
            "request": dict(self.request),
            "options": [option.to_json() for option in self.options],
            "excluded": [excluded.to_json() for excluded in self.excluded],
            "assumptions": [assumption.to_json() for assumption in self.assumptions],
            "warnings": list(self.warnings),
            "evaluated": self.evaluated,
            "oldest_price": moment(self.oldest_price),
        }
