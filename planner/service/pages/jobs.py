"""Jobs and kept plans."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from planner.reports.plan_file import plan_of
from planner.service.jobs import RUNNING
from planner.service.pages.render import page
from planner.service.pages.run_plan import run_page
from planner.service.pages.schedule_plan import chosen_point, schedule_page
from planner.service.room import room, who

router = APIRouter()


@router.get("/jobs", response_class=HTMLResponse)
async def jobs(request: Request) -> HTMLResponse:
    """The caller's jobs and plans, newest first."""
    held, sees = room(request), who(request).sees
    found = await held.apart(held.jobs.newest, sees)
    plans = await held.apart(held.state.plans, sees)
    running = any(job["state"] in RUNNING for job in found)
    return page(request, "jobs.html", jobs=found, plans=plans, running=running)


@router.get("/jobs/{id}", response_class=HTMLResponse)
async def job(id: str, request: Request) -> HTMLResponse:
    held = room(request)
    found = await held.apart(held.jobs.get, id, who(request).sees)
    if found is None:
        raise HTTPException(404, f"no job {id[:64]} of yours")
    result = f"/plans/{found['plan_id']}" if found["plan_id"] else ""
    return page(request, "job.html", job=found, running=found["state"] in RUNNING, result=result)


@router.post("/jobs/{id}/cancel")
async def cancel(id: str, request: Request) -> Response:
    held = room(request)
    if who(request).may("planner"):
        await held.apart(held.jobs.cancel, id, who(request).sees)
    return RedirectResponse(f"/jobs/{id}", 303)


@router.get("/plans/{id}", response_class=HTMLResponse)
async def plan(id: str, request: Request) -> HTMLResponse:
    """A kept plan of either kind; ?point= chooses an option or a point of the front."""
    held = room(request)
    found = await held.apart(held.state.plan, id, who(request).sees)
    if found is None:
        raise HTTPException(404, f"no plan {id[:64]} of yours")
    document: dict[str, Any] = found["document"]
    which = request.query_params.get("point")
    base = f"/plans/{id}?"
    if document["kind"] == "schedule":
        point = chosen_point(document, which)
        return schedule_page(request, document, which, base, files=_files(id, point["point"]))
    option = plan_of(document, int(which) if which and which.isdecimal() else None)
    # The reasons need the planner's own records; they are made when a plan is asked for, not kept.
    files = _files(id, option["rank"])
    return run_page(request, document, None, base, rank=option["rank"], files=files, query="")


def _files(id: str, point: Any) -> dict[str, str]:
    return {
        "Plan as JSON": f"/v1/plans/{id}",
        "Report as one page": f"/v1/plans/{id}/report.html?point={point}",
        "Finance files (ZIP)": f"/v1/plans/{id}/finance.zip?point={point}",
    }
