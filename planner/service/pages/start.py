"""The first page: the main question as one form, and its answer below it as the terminal's table."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from planner.service.pages import asking, fields
from planner.service.pages.faults import TELLABLE, told
from planner.service.pages.render import page

router = APIRouter()

_FIRST = {"model": "bert-base", "epochs": "10", "currency": "USD"}
"""What an empty form shows: a question that can be asked as it stands."""


@router.get("/", response_class=HTMLResponse)
async def start(request: Request) -> HTMLResponse:
    """The form; with a model in the address, its answer too."""
    filled = fields.given(request.query_params.multi_items())
    everything = request.query_params.get("all") == "1"
    context: dict[str, Any] = {"filled": filled or _FIRST, "shown": None, "fault": None}
    status = 200
    if filled:
        try:
            plan = await asking.plan_of(fields.values(filled))
            context |= answered(plan.to_json(), everything)
        except TELLABLE as error:
            fault = told(error)
            context |= {"fault": fault, "errors": fault.fields}
            status = fault.status
    query = fields.query(filled)
    return page(
        request,
        "start.html",
        status,
        **context,
        **form(),
        query=query,
        base=f"/plan?{query}&",
        everything=everything,
    )


def form() -> dict[str, Any]:
    """What the form's template needs besides what was filled in."""
    return {"main_fields": fields.MAIN, "more_fields": fields.MORE, "names": asking.names()}


def answered(document: dict[str, Any], everything: bool = False) -> dict[str, Any]:
    """The table of a plan document, with its header and footer in words."""
    from planner.reports import pareto_table

    shown = pareto_table.shown(document, everything)
    footer = pareto_table.footer(document, shown.options, shown.names)
    return {
        "document": document,
        "shown": shown,
        "header": pareto_table.header(document),
        # The other lines count what the plan's page lists, and name flags of the command line.
        "footer": [line for line in footer if not line.startswith(("Assumed:", "Left out:", "Next:"))],
        "right": pareto_table.RIGHT,
    }
