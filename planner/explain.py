"""The sum behind one option, term by term: work, speed, memory, time, prices, each cost line, total."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from . import money
from .answer import SCHEMA_VERSION, PlanOption, moment

if TYPE_CHECKING:
    from .plan import Plan

_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Term:
    """One line of an explanation.

    value: as text, exact for money. amount: set on the leaves that are money; they add up to the total.
    """

    term: str
    value: str
    unit: str
    formula: str = ""
    source: str = ""
    basis: str = ""
    amount: Decimal | None = None
    children: tuple[Term, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "term": self.term,
            "value": self.value,
            "unit": self.unit,
            "formula": self.formula,
            "source": self.source,
            "basis": self.basis,
            "amount": None if self.amount is None else money.text(self.amount),
            "children": [child.to_json() for child in self.children],
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one option is made of. terms: work, speed, memory, time, prices, cost."""

    option: PlanOption
    currency: str
    terms: tuple[Term, ...]

    @property
    def leaves(self) -> tuple[Term, ...]:
        """The terms that are money; their amounts add up to the option's cost exactly."""
        found: list[Term] = []
        waiting = list(reversed(self.terms))
        while waiting:
            term = waiting.pop()
            if term.amount is not None:
                found.append(term)
            waiting += reversed(term.children)
        return tuple(found)

    @property
    def total(self) -> Decimal:
        """The sum of the leaves. [currency]"""
        return money.total(term.amount for term in self.leaves if term.amount is not None)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "explanation",
            "rank": self.option.rank,
            "id": self.option.id,
            "currency": self.currency,
            "total": money.text(self.total),
            "terms": [term.to_json() for term in self.terms],
        }


def explain(plan: Plan, which: int | str) -> Explanation:
    """Every term of one option. which: a rank, an option id or a hardware id. Raises UsageError."""
    option = plan.option(which)
    terms = (
        _work(plan, option),
        _speed(option),
        _memory(option),
        _time(option),
        _prices(option),
        _cost(option),
    )
    return Explanation(option, plan.currency, terms)


def _work(plan: Plan, option: PlanOption) -> Term:
    job = plan.job
    if job.tokens is not None:
        samples = f"{job.tokens:,} tokens / tokens of a sample"
    else:
        samples = f"{job.dataset_samples:,} samples of {job.dataset} × {job.epochs:f} epochs"
    size = () if job.size is None else (Term("sample size", f"{job.size:,}", job.size_unit or ""),)
    arithmetic = _arithmetic(option, job.steps)
    return Term(
        "work",
        f"{job.steps:,}",
        "optimizer steps",
        f"ceil({job.samples:,} samples / global batch {job.global_batch_size:,})",
        "reference run, as changed",
        children=(
            *arithmetic,
            Term("samples", f"{job.samples:,}", "samples", samples),
            *size,
            Term("parameters", f"{job.parameters:,}", "", f"{job.title}, the plain published model"),
        ),
    )


def _arithmetic(option: PlanOption, steps: int) -> tuple[Term, ...]:
    """FLOPs of the whole run, by op class; none where the step was not traced."""
    flops = option.throughput.flops
    each = tuple(
        Term(op_class, f"{amount * steps:.4g}", "FLOP", f"{amount:.4g} a step × {steps:,} steps")
        for op_class, amount in flops
        if amount > 0
    )
    if not each:
        return ()
    total = sum(amount for _, amount in flops) * steps
    how = "all GPUs, whole run, from the traced step"
    return (Term("arithmetic", f"{total:.4g}", "FLOP", how, children=each),)


def _speed(option: PlanOption) -> Term:
    speed = option.throughput
    how = (
        f"{option.gpu_count} × {option.gpu}, {speed.precision}, micro-batch {speed.micro_batch_size} × "
        f"accumulation {speed.accumulation} × {option.gpu_count} GPUs = {speed.global_batch_size}"
    )
    how += f", {speed.strategy} over {speed.link}" if option.gpu_count > 1 else ""
    how += ", activation checkpointing" if speed.activation_checkpointing else ""
    parts = tuple(
        Term(f"{op_class} {phase}", f"{seconds:.6g}", "s", f"{seconds / speed.step_seconds:.1%} of the step")
        for op_class, phase, seconds in sorted(speed.breakdown, key=lambda part: (-part[2], part[0], part[1]))
        if seconds > 0
    )
    return Term(
        "speed",
        f"{speed.value:.6g}",
        "samples/s",
        f"{speed.global_batch_size:,} samples / {speed.step_seconds:.6g} s a step; {how}",
        f"step time estimate, tier {speed.tier}; 80 % band {speed.low:.4g} to {speed.high:.4g}",
        "modelled",
        children=parts,
    )


def _memory(option: PlanOption) -> Term:
    room = option.memory
    parts = tuple(
        Term(name.replace("_", " "), f"{size / _GIB:.3f}", "GiB")
        for name, size in sorted(room.breakdown.items(), key=lambda part: (-part[1], part[0]))
        if size
    )
    return Term(
        "memory",
        f"{room.process_bytes[0] / _GIB:.2f}",
        "GiB per GPU",
        f"P95 {room.process_bytes[1] / _GIB:.2f} of {room.capacity_bytes / _GIB:.2f} GiB; peak in "
        f"{room.peak_phase} at {room.peak_op}",
        f"memory estimate, tier {room.tier}",
        "modelled",
        children=parts,
    )


def _time(option: PlanOption) -> Term:
    lines = tuple(
        Term(line.item, f"{line.hours:f}", "h", line.formula, line.source, line.basis)
        for line in option.time_lines
    )
    hours = option.time_hours
    return Term(
        "time",
        f"{hours.p50:f}",
        "h",
        " + ".join(line.item for line in option.time_lines),
        f"80 % range {hours.p10:.4g} to {hours.p90:.4g} h",
        children=lines,
    )


def _prices(option: PlanOption) -> Term:
    lines = []
    for used in option.prices:
        converted = ""
        if used.fx_source is not None:
            converted = f"; × {used.fx_rate:f}, {used.fx_source}, {moment(used.fx_observed_at)}"
        lines.append(
            Term(
                f"{used.item} {used.contract}",
                money.text(used.amount),
                f"{used.currency}/{used.unit}",
                f"{used.provider} {used.region}, seen {used.observed_at:%Y-%m-%d}, {used.age_days} days old"
                f"{converted}",
                f"{used.source}: {used.source_ref}" if used.source_ref else used.source,
                "quoted",
            )
        )
    return Term("prices", str(len(lines)), "stored prices", children=tuple(lines))


def _cost(option: PlanOption) -> Term:
    """The lines; only they carry an amount."""
    lines = tuple(
        Term(
            line.item,
            money.text(line.amount),
            line.currency,
            f"{line.quantity:f} {line.unit} × {money.text(line.unit_price)}: {line.formula}",
            line.source + (f", {line.observed_at:%Y-%m-%d}" if line.observed_at else ""),
            line.basis,
            amount=line.amount,
        )
        for line in option.cost_lines
    )
    cost = option.cost
    return Term(
        "cost",
        money.text(cost.p50),
        option.cost_lines[0].currency if option.cost_lines else "",
        "the lines, added exactly",
        f"80 % range {cost.p10:.2f} to {cost.p90:.2f}",
        children=lines,
    )
