"""The plan of one run: choose an option and everything follows; the same as files."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from planner.service.pages import asking, fields
from planner.service.pages.faults import TELLABLE, told
from planner.service.pages.render import page
from planner.service.pages.start import answered

router = APIRouter(prefix="/plan")


@router.get("", response_class=HTMLResponse)
async def plan(request: Request) -> HTMLResponse:
    """One option of the plan in full: its hours, its money, its reasons, and what else there was."""
    filled = fields.given(request.query_params.multi_items())
    point = request.query_params.get("point")
    try:
        found, reasons = await asking.plan_and_reasons(fields.values(filled), point)
    except TELLABLE as error:
        fault = told(error)
        return page(request, "fault.html", fault.status, fault=fault, query=fields.query(filled))
    query = fields.query(filled)
    document, option = found.to_json(), reasons.option.to_json()
    return page(
        request,
        "run_plan.html",
        **answered(document),
        query=query,
        option=option,
        reasons=reasons.to_json(),
        **_drawings(document, option, query),
    )


def _drawings(document: dict[str, Any], option: dict[str, Any], query: str) -> dict[str, str]:
    from planner.reports.drawings.front import run_front
    from planner.reports.drawings.gantt import stretches

    def href(rank: int) -> str:
        return f"/plan?{query}&point={rank}"

    return {
        "front": run_front(document, option["rank"], href),
        "stretches": stretches(option["time_lines"]),
    }


@router.get("/plan.json")
async def as_json(request: Request) -> Response:
    """The plan as `planner optimize -o plan.json` writes it."""
    from planner.reports.tabular import to_json

    return await _file(request, "plan.json", "application/json", to_json)


@router.get("/options.csv")
async def as_csv(request: Request) -> Response:
    """Every option as a row, figures in full."""
    from planner.reports.plan_rows import option_rows
    from planner.reports.tabular import to_csv

    return await _file(request, "options.csv", "text/csv", lambda document: to_csv(option_rows(document)))


async def _file(request: Request, name: str, kind: str, write: Any) -> Response:
    filled = fields.given(request.query_params.multi_items())
    try:
        found = await asking.plan_of(fields.values(filled))
    except TELLABLE as error:
        fault = told(error)
        return page(request, "fault.html", fault.status, fault=fault, query=fields.query(filled))
    content = await asking.apart(lambda: write(found.to_json()))
    return attached(content, name, kind)


def attached(content: str | bytes, name: str, kind: str) -> Response:
    """A file to be saved under `name`, a plain name of ours."""
    charset = "; charset=utf-8" if kind.startswith("text/") else ""
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(content, media_type=f"{kind}{charset}", headers=headers)
