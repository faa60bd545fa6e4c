"""Who costs what: payments by month and by job, team, project, provider or tag. Each adds up to the plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal

from planner import money

from .accrual import Accrual
from .book import Line
from .months import Month, month_of
from .table import Column, Row, Table, columns

SHARED = "(shared)"
"""What belongs to no single job: rigs, promises, staff. It is shown, never spread by a rule of our own."""
UNTAGGED = "(untagged)"


def by_job(accrual: Accrual) -> Table:
    return _by(accrual, "job", "Job", lambda line: line.job or SHARED)


def by_team(accrual: Accrual) -> Table:
    return _by(accrual, "team", "Team", lambda line: line.team or SHARED)


def by_project(accrual: Accrual) -> Table:
    return _by(accrual, "project", "Project", lambda line: line.project or SHARED)


def by_provider(accrual: Accrual) -> Table:
    return _by(accrual, "provider", "Provider", lambda line: line.provider)


def _by(accrual: Accrual, what: str, column: str, key: Callable[[Line], str]) -> Table:
    def rows() -> Iterator[Row]:
        sums: defaultdict[tuple[str, Month], list[Decimal]] = defaultdict(list)
        for line in accrual.book.lines:
            sums[key(line), month_of(line.due, accrual.book.zone)].append(line.amount)
        for (name, month), amounts in sorted(sums.items()):
            yield name, month.first_day, money.total(amounts)

    return Table(
        f"cost_by_{what}", f"Cost by {what}",
        f"Payments of each {what} by month; {SHARED} is what belongs to no single job.",
        (Column(column, "text"), *columns(Month="date", Cost="money")), rows,
    )  # fmt: skip


def by_tag(accrual: Accrual) -> Table:
    """Once for each tag key: within one key the values, with what lacks it, add up to the plan."""
    lines = accrual.book.lines
    keys = sorted({key for line in lines for key in line.tags})

    def rows() -> Iterator[Row]:
        for key in keys:
            sums: defaultdict[tuple[str, Month], list[Decimal]] = defaultdict(list)
            for line in lines:
                month = month_of(line.due, accrual.book.zone)
                sums[str(line.tags.get(key, UNTAGGED)), month].append(line.amount)
            for (value, month), amounts in sorted(sums.items()):
                yield key, value, month.first_day, money.total(amounts)

    return Table(
        "cost_by_tag", "Cost by tag",
        f"Payments by tag and month; {UNTAGGED} is what lacks the tag, so each tag adds up to the plan.",
        columns(Tag="text", Value="text", Month="date", Cost="money"), rows,
    )  # fmt: skip
