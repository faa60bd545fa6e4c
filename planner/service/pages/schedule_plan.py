"""The page of a schedule's plan: its front, and everything about the point that was chosen."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse

from planner.errors import UsageError
from planner.service.pages.render import page


def schedule_page(
    request: Request,
    document: dict[str, Any],
    which: str | None,
    base: str,
    *,
    files: dict[str, str],
    reasons: dict[str, Any] | None = None,
    again: str = "",
) -> HTMLResponse:
    """which: number of a point of the front; None: the one to book, else the cheapest.

    base: address that a choice is added to. files: words -> address of a download. again: of its editor.
    reasons: the explanation of the point. Raises UsageError for a point that is not there.
    """
    from planner.reports.drawings import amounts, front, gantt
    from planner.reports.monthly import months

    point = chosen_point(document, which)
    by_month = months(point["ledger"], document["time_zone"])
    return page(
        request,
        "schedule_plan.html",
        document=document,
        point=point,
        base=base,
        files=files,
        again=again,
        reasons=reasons,
        front=front.schedule_front(document, point["point"], lambda number: f"{base}point={number}"),
        gantt=gantt.gantt(point["jobs"], document["starts"], document["ends"]),
        cash=amounts.cash([(month.name, month.total) for month in by_month], document["currency"]),
        months=by_month,
        kinds=sorted({kind for month in by_month for kind in month.kinds}),
    )


def chosen_point(document: dict[str, Any], which: str | None) -> dict[str, Any]:
    """The point of that number, the one to book, or the cheapest. Raises UsageError."""
    points: list[dict[str, Any]] = document["front"]
    wanted = which or str(document["chosen"] or points[0]["point"])
    for point in points:
        if str(point["point"]) == wanted:
            return point
    raise UsageError(f'no point "{wanted[:40]}" on this front (1 to {len(points)})', "point")
