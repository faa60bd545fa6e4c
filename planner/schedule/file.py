"""The schedule file: what is asked of a project's whole training, as YAML that pydantic checks.

Unknown keys are refused with the nearest known one, and a number that could be two things needs its unit.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from planner.request import CONVERT, span_hours

from . import quantities as q

MOST_JOBS = 2000
_ID = r"^[A-Za-z0-9][\w.-]{0,63}$"


def _read(convert: Any, *examples: str) -> BeforeValidator:
    """A value as `convert` reads it; None stays None. examples: as it stands in a file."""
    written = Annotated[str | int | float | None, Field(examples=list(examples))]
    return BeforeValidator(
        lambda value: None if value is None else convert(value), json_schema_input_type=written
    )


def _money(*per: str, example: str) -> BeforeValidator:
    return _read(lambda value: q.money_per(value, per, example), example)


# (amount, currency)
Money = tuple[Decimal, str]


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        said = f'no time zone "{name[:40]}"; an IANA name such as "Europe/Berlin" is meant'
        raise ValueError(said) from error
    return name


def _month(value: Any) -> date:
    written = value.isoformat() if isinstance(value, date) and not isinstance(value, datetime) else str(value)
    try:
        day = date.fromisoformat(written if len(written) == 10 else f"{written}-01")
    except ValueError as error:
        raise ValueError('must be the first day of a month, such as "2027-01-01"') from error
    if day.day != 1:
        raise ValueError(f"must be the first day of a month, such as {day:%Y-%m}-01")
    return day


def _every(value: Any) -> Any:
    return value if value == "month" else span_hours(value)


Share = Annotated[Decimal, _read(q.share, "19 %")]
Hours = Annotated[Decimal, _read(span_hours, "21d", "6h")]
When = Annotated[datetime | date | Decimal | None, _read(q.moment_or_span, "2027-03-31", "5d")]


class Part(BaseModel):
    """What every part of the file has in common."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Repeat(Part):
    """every: "month" (in each month of the schedule from the release on), or a span such as "7d".

    times: how often; None with "month": to the schedule's end. runs: so many at once, as in a sweep.
    """

    every: Annotated[Literal["month"] | Decimal | None, _read(_every, "month", "7d")] = None
    times: Annotated[int, Field(ge=1, le=MOST_JOBS)] | None = None
    runs: Annotated[int, Field(ge=1, le=MOST_JOBS)] = 1

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.every is not None and self.every != "month" and self.times is None:
            raise ValueError('times is needed with a span, such as {every: "7d", times: 10}')
        if self.every is None and self.times is not None:
            raise ValueError('every is needed with times: "month", or a span such as "7d"; a sweep says runs')
        return self


class ScheduledJob(Part):
    """One run, or several alike.

    epochs, steps or tokens: how much to train, one of them; none: the workload's reference run.
    after: ids of jobs that must have ended. release, deadline: an instant, a date (its start; of a deadline
    its end), or a span: from the schedule's start, of a deadline from the job's release.
    """

    id: Annotated[str, Field(pattern=_ID)]
    workload: Annotated[str, Field(min_length=1, max_length=200)]
    epochs: Annotated[Decimal | None, _read(CONVERT["epochs"], "10")] = None
    steps: Annotated[int | None, _read(CONVERT["tokens"], "100000")] = None
    tokens: Annotated[int | None, _read(CONVERT["tokens"], "9e9")] = None
    dataset_samples: Annotated[int | None, _read(CONVERT["dataset_samples"], "87599")] = None
    batch_size: Annotated[int | None, _read(CONVERT["batch_size"], "32")] = None
    seq_len: Annotated[int | None, _read(CONVERT["seq_len"], "384")] = None
    precision: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    spot: bool | None = None
    repeat: Repeat = Repeat()
    after: tuple[str, ...] = ()
    release: When = None
    deadline: When = None
    priority: Annotated[int, Field(ge=1, le=100)] = 1
    project: str = ""
    team: str = ""
    tags: dict[str, str] = {}

    @model_validator(mode="after")
    def _one_amount(self) -> Self:
        given = [name for name in ("epochs", "steps", "tokens") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"give {' or '.join(given)}, not both")
        return self


class RigsAtHand(Part):
    """Rigs that stand ready. sell: at the end of the schedule."""

    rig: str
    count: Annotated[int, Field(ge=1, le=1000)] = 1


class RigsToBuy(Part):
    """Rigs that may be bought. most: of them. lead_time: from order to first use."""

    rig: str
    most: Annotated[int, Field(ge=1, le=1000)] = 4
    lead_time: Hours = Decimal(0)


class Hardware(Part):
    """What is owned and what may be. power_limit: of all rigs together at load."""

    at_hand: tuple[RigsAtHand, ...] = ()
    may_buy: tuple[RigsToBuy, ...] = ()
    power_limit: Annotated[Decimal | None, _read(q.watts, "8 kW")] = None
    sell_at_end: bool = True
    availability: Annotated[Decimal, _read(CONVERT["utilization"], "0.95")] = Decimal("0.95")


class Quota(Part):
    """At most so many GPUs at once. provider, gpu, region: what it holds for; None: any."""

    gpus: Annotated[int, Field(ge=0, le=1_000_000)]
    provider: str | None = None
    gpu: str | None = None
    region: str | None = None


class SpendCommitment(Part):
    """A discount on on-demand prices of one provider for an hourly spend promised to the schedule's end.

    held: spend promised already. most: the highest that may be promised.
    """

    id: Annotated[str, Field(pattern=_ID)]
    provider: str
    discount: Share
    held: Annotated[Money | None, _money("h", "hour", example="2.50 USD/h")] = None
    most: Annotated[Money | None, _money("h", "hour", example="10 USD/h")] = None
    step: Annotated[Money | None, _money("h", "hour", example="0.10 USD/h")] = None


class Cloud(Part):
    """What may be rented. spot: True: spot alone, False: none, None: both."""

    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    spot: bool | None = None
    max_gpus: Annotated[int, Field(ge=1, le=65536)] = 16
    quotas: tuple[Quota, ...] = ()
    commitments: tuple[SpendCommitment, ...] = ()


class Cooling(Part):
    """kind: air or liquid. cost: of one rig's cooling, once. pue: facility power over IT power under it."""

    kind: Literal["air", "liquid"] = "air"
    cost: Annotated[Money | None, _money("rig", example="400 USD/rig")] = None
    pue: Annotated[Decimal | None, _read(CONVERT["pue"], "1.2")] = None


class Costs(Part):
    """What owning costs besides the rigs. None: the planner's assumption or stored price."""

    electricity: Annotated[Money | None, _money("kwh", example="0.30 USD/kWh")] = None
    cooling: Cooling = Cooling()
    staff: Annotated[Money | None, _money("rig-year", example="1200 USD/rig-year")] = None
    hosting: Annotated[Money | None, _money("rig-month", example="80 USD/rig-month")] = None
    purchase_tax: Share = Decimal(0)
    discount_rate: Annotated[Decimal, _read(q.yearly_rate, "6 %/y")] = Decimal(0)
    carbon_intensity: Annotated[Decimal | None, _read(q.carbon, "350 g/kWh")] = None


class ScheduleFile(Part):
    """The whole file. starts: first day of month 0. budget: of everything; monthly_budget: of each month."""

    name: Annotated[str, Field(min_length=1, max_length=120)] = "schedule"
    starts: Annotated[date, _read(_month, "2027-01-01")]
    months: Annotated[int, Field(ge=1, le=120)] = 12
    time_zone: Annotated[str, AfterValidator(_zone)] = "UTC"
    currency: Annotated[str, _read(CONVERT["currency"], "USD")] = "USD"
    fx: Annotated[dict[str, Decimal], _read(CONVERT["fx"])] = {}
    as_of: Annotated[datetime | None, _read(CONVERT["as_of"], "2026-12-01")] = None
    seed: Annotated[int, _read(CONVERT["seed"], "0")] = 0
    objective: Literal["finish", "turnaround", "lateness"] = "turnaround"
    budget: Annotated[Money | None, _money(example="60000 USD")] = None
    monthly_budget: Annotated[Money | None, _money("month", example="9000 USD/month")] = None
    hardware: Hardware = Hardware()
    cloud: Cloud = Cloud()
    costs: Costs = Costs()
    assume: Annotated[dict[str, Decimal], _read(CONVERT["assume"])] = {}
    jobs: Annotated[tuple[ScheduledJob, ...], Field(min_length=1, max_length=MOST_JOBS)]

    @model_validator(mode="after")
    def _ids(self) -> Self:
        seen: set[str] = set()
        for job in self.jobs:
            if job.id in seen:
                raise ValueError(f'two jobs are called "{job.id}"')
            seen.add(job.id)
        for job in self.jobs:
            for name in job.after:
                if name not in seen:
                    from planner.models.errors import nearest_names

                    near = nearest_names(name, sorted(seen), limit=1)
                    hint = f'; did you mean "{near[0]}"?' if near else ""
                    raise ValueError(f'"{job.id}" comes after "{name}", which is no job of this file{hint}')
        return self


def read_schedule(source: str | Path | dict[str, Any]) -> ScheduleFile:
    """The schedule of a YAML file or of plain values. Raises UsageError naming place and what is meant."""
    from .reading import checked, load

    if isinstance(source, str | Path):
        return checked(load(source), str(source))
    return checked(source)
