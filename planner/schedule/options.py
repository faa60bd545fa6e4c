"""What could run each job of a schedule: the rows of the one-job plan, those that can matter.

Runs that ask for the same work share their rows. Of a rig, a row carries what the run itself costs (power,
upkeep): what the rig costs is decided once for all runs. Reserved terms and purchases for one run alone are
left to the schedule's own decisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from planner import money
from planner.answer import Assumption, Excluded, Job, PlanOption
from planner.assumptions import Assumptions, assumptions
from planner.errors import Infeasible, NoPrice, UsageError
from planner.estimator import Estimator, TracedEstimator
from planner.limits import Limits, why_empty
from planner.market import Market
from planner.options import Machine, OptionFinder
from planner.own_rigs import AtHand
from planner.planning import Planning, terms_of
from planner.request import OptimizeRequest
from planner.rows import Row, rows_of_machine
from planner.terms import Priced, Terms

from .file import ScheduledJob, ScheduleFile
from .runs import Run

_RENTED = frozenset({"on_demand", "community", "spot"})
_FORGONE = "resale forgone"


@dataclass(frozen=True, slots=True)
class Choosable:
    """One row a run may take. priced: its lines, without what the rig itself costs.

    cost: the sum of those lines [currency]; energy_kwh: of owned power, None where rented.
    """

    id: str
    row: Row
    priced: Priced
    cost: Decimal
    energy_kwh: Decimal | None

    @property
    def owned(self) -> bool:
        return self.row.model.id == "own"


@dataclass(frozen=True, slots=True)
class Work:
    """Equal runs' work and everything that could do it. excluded: what could not, and why."""

    job: Job
    told: tuple[Assumption, ...]
    terms: Terms
    request: OptimizeRequest
    estimator: Estimator
    choosable: tuple[Choosable, ...]
    excluded: tuple[Excluded, ...]

    def plan_options(self, chosen: Iterable[Choosable], seed: int) -> dict[str, PlanOption]:
        """The chosen rows as options of a plan, by their id."""
        from planner.assemble import options_of

        chosen = list({each.id: each for each in chosen}.values())
        rows = [each.row for each in chosen]
        places = [str(place) for place in range(len(rows))]
        limits = Limits(None, None, None, self.request.currency)
        none: dict[str, str | None] = dict.fromkeys(places)
        made = options_of(places, rows, none, self.terms, self.job, self.estimator, limits, seed)
        return {each.id: replace(option, id=each.id) for each, option in zip(chosen, made, strict=True)}


class Workshop:
    """Finds the work of every run; equal questions are asked once.

    rigs: how many of each rig there could be at most, at hand and bought.
    """

    def __init__(self, file: ScheduleFile, market: Market, owned: AtHand, now: datetime) -> None:
        self._file = file
        self._market = market
        self._owned = owned
        self._now = now
        self._assume: Assumptions = assumptions(file.assume)
        self._found: dict[OptimizeRequest | str, Work] = {}

    @property
    def assume(self) -> Assumptions:
        return self._assume

    def work(self, run: Run) -> Work:
        """Raises Infeasible, NoPrice and UsageError naming the run."""
        request = request_of(run.job, self._file)
        key = repr(request)
        if key not in self._found:
            try:
                self._found[key] = self._work(request)
            except (Infeasible, NoPrice, UsageError) as error:
                error.args = (f"{run.id}: {error}",)
                raise
        return self._found[key]

    def _work(self, request: OptimizeRequest) -> Work:
        from planner.api import find_workload, machines_for
        from planner.work import job_of, usual_precisions

        workload = find_workload(request.model)
        job, told = job_of(workload, request)
        machines = machines_for(request, self._market, self._owned)
        precisions = request.precision or usual_precisions(workload)
        estimator = TracedEstimator(workload, job.size, job.optimizer)
        estimator.prepare((machine.gpu for machine in machines), precisions)
        terms = terms_of(
            Planning(
                request, job, told, machines, self._owned, self._market, self._assume, estimator, precisions,
                self._now,
            )
        )  # fmt: skip
        finder = OptionFinder(estimator, precisions, job.global_batch_size)
        excluded: list[Excluded] = []
        found = self._rows(machines, job, request, terms, finder, excluded)
        if not found:
            raise why_empty([*excluded, *self._market.excluded], finder.nearest_misfit, self._market)
        return Work(job, told, terms, request, estimator, tuple(found), tuple(excluded))

    def _rows(
        self,
        machines: Sequence[Machine],
        job: Job,
        request: OptimizeRequest,
        terms: Terms,
        finder: OptionFinder,
        excluded: list[Excluded],
    ) -> list[Choosable]:
        rows: list[Row] = []
        for machine in machines:
            if machine.provider == "own" and machine.id not in self._owned.counts:
                continue  # a rig that the schedule neither has nor may buy
            rows += rows_of_machine(machine, job, request, terms, finder, excluded)
        wanted = [row for row in rows if row.model.id in _RENTED or row.model.id == "own"]
        names: dict[str, int] = {}
        found = []
        for row in wanted:
            names[row.id] = names.get(row.id, 0) + 1
            name = row.id if names[row.id] == 1 else f"{row.id}#{names[row.id]}"
            found.append(_choosable(name, row, terms))
        return found


def _choosable(name: str, row: Row, terms: Terms) -> Choosable:
    priced = row.price(terms)
    if row.model.id != "own":
        return Choosable(name, row, priced, row.cost, None)
    kept = [
        (line, risk) for line, risk in zip(priced.lines, priced.risks, strict=True) if line.item != _FORGONE
    ]
    own = replace(priced, lines=tuple(line for line, _ in kept), risks=tuple(risk for _, risk in kept))
    energy = money.total(line.quantity for line in own.lines if line.unit == "kWh")
    return Choosable(name, row, own, own.cost, energy or None)


def request_of(job: ScheduledJob, file: ScheduleFile) -> OptimizeRequest:
    """The one-job request of a run, under the schedule's own terms. Raises UsageError."""
    cloud, costs = file.cloud, file.costs
    dataset_samples, epochs = job.dataset_samples, job.epochs
    if job.steps is not None:
        dataset_samples, epochs = _samples_of_steps(job, job.steps), Decimal(1)
    return OptimizeRequest(
        model=job.workload,
        epochs=epochs,
        tokens=job.tokens,
        dataset_samples=dataset_samples,
        batch_size=job.batch_size,
        seq_len=job.seq_len,
        precision=job.precision,
        gpu=job.gpus or cloud.gpus,
        provider=_with_own(job.providers or cloud.providers),
        region=job.regions or cloud.regions,
        spot=cloud.spot if job.spot is None else job.spot,
        own=("at hand",),
        max_gpus=cloud.max_gpus,
        currency=file.currency,
        fx=file.fx,
        as_of=file.as_of,
        seed=file.seed,
        electricity_price=converted(costs.electricity, file, "costs.electricity"),
        pue=costs.cooling.pue,
        assume=file.assume,
    )


def _with_own(providers: tuple[str, ...]) -> tuple[str, ...]:
    """Sellers limit what is rented; what is owned stays."""
    return (*providers, "own") if providers and "own" not in providers else providers


def _samples_of_steps(job: ScheduledJob, steps: int) -> int:
    from planner.api import find_workload

    reference = find_workload(job.workload).reference
    batch = job.batch_size or (reference.global_batch_size if reference else None)
    if batch is None:
        raise UsageError(f"{job.id}: steps need a batch_size: {job.workload} has no reference run", "steps")
    return steps * batch


def converted(
    amount: tuple[Decimal, str] | None,
    file: ScheduleFile,
    key: str,
    rates: Mapping[str, Decimal] | None = None,
) -> Decimal | None:
    """An amount of the file in the schedule's currency. Raises UsageError where no rate is given."""
    if amount is None:
        return None
    value, currency = amount
    if currency == file.currency:
        return value
    rate = (rates or file.fx).get(currency)
    if rate is None:
        raise UsageError(f"{key}: is in {currency}; give fx: {{{currency}: RATE}} to {file.currency}", key)
    return money.product(value, rate)
