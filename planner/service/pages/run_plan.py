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
    files = {
        "Plan as JSON": f"/plan/plan.json?{query}",
        "Options as CSV": f"/plan/options.csv?{query}",
        "Finance files (ZIP)": f"/plan/finance.zip?{query}&point={reasons.option.rank}",
    }
    document = found.to_json()
    return run_page(
        request,
        document,
        reasons.to_json(),
        f"/plan?{query}&",
        rank=reasons.option.rank,
        files=files,
        query=query,
    )


def run_page(
    request: Request,
    document: dict[str, Any],
    reasons: dict[str, Any] | None,
    base: str,
    *,
    rank: int,
    files: dict[str, str],
    query: str,
) -> HTMLResponse:
    """The page of a plan document of one run. rank: of the chosen option. reasons: its explanation;
    None for a kept plan, which holds none.

    base: address that a choice is added to. files: words -> address of what can be downloaded.
    query: the question in an address, "" where the plan was kept and not asked for just now.
    """
    from planner.reports.drawings.front import run_front
    from planner.reports.drawings.gantt import stretches

    (option,) = (option for option in document["options"] if option["rank"] == rank)
    return page(
        request,
        "run_plan.html",
        **answered(document),
        query=query,
        base=base,
        files=files,
        option=option,
        reasons=reasons,
        front=run_front(document, option["rank"], lambda rank: f"{base}point={rank}"),
        stretches=stretches(option["time_lines"]),
    )


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


@router.get("/finance.zip")
async def as_finance(request: Request) -> Response:
    """The finance reports of the chosen option, as `planner report finance` writes them."""
    from planner.service.files import finance_zip

    point = request.query_params.get("point", "")
    chosen = int(point) if point.isdecimal() else None
    return await _file(
        request, "finance.zip", "application/zip", lambda document: finance_zip(document, chosen)
    )


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
