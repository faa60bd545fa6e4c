"""The schedule editor: YAML with what is wrong beside it, line by line; planning it makes a job."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from planner.errors import UsageError
from planner.service.pages import add_job, asking, schedule_text
from planner.service.pages.faults import TELLABLE, told
from planner.service.pages.render import page

router = APIRouter(prefix="/schedule")

_FEWEST_ROWS, _MOST_ROWS = 18, 44


@router.get("", response_class=HTMLResponse)
async def editor(request: Request) -> HTMLResponse:
    """The example, ready to be changed."""
    return _editor(request, await asking.apart(_example))


@router.post("", response_class=HTMLResponse)
async def sent(request: Request) -> Response:
    """Check the text; plan it where that was asked and nothing is wrong."""
    form = await request.form()
    text = str(form.get("schedule", "")).replace("\r\n", "\n").lstrip("\n")
    if form.get("do") == "add":
        return await _added(
            request, text, {key: str(form.get(key, "")).strip()[:200] for key in add_job.KEYS}
        )
    try:
        found = await asking.apart(schedule_text.read, text)
    except UsageError as error:
        wrong = await asking.apart(schedule_text.messages, error, text)
        return _editor(request, text, 422, messages=wrong)
    if form.get("do") == "plan":
        try:
            return await asking.begin_schedule(request, text)
        except TELLABLE as error:
            fault = told(error)
            return _editor(request, text, fault.status, fault=fault)
    months = "month" if found.months == 1 else "months"
    jobs = "job" if len(found.jobs) == 1 else "jobs"
    sound = f"{len(found.jobs)} {jobs} over {found.months} {months} from {found.starts}, in {found.currency}."
    return _editor(request, text, sound=sound)


async def _added(request: Request, text: str, filled: dict[str, str]) -> HTMLResponse:
    """The text with the job of the small form, and what is wrong with it now."""
    needed = {key: "is needed" for key in ("id", "workload") if not filled[key]}
    if needed:
        return _editor(request, text, 422, job=filled, errors=needed)
    try:
        text = await asking.apart(add_job.with_job, text, filled)
        await asking.apart(schedule_text.read, text)
    except UsageError as error:
        wrong = await asking.apart(schedule_text.messages, error, text)
        return _editor(request, text, 422, messages=wrong)
    return _editor(request, text, sound=f'"{filled["id"]}" stands in the text now.')


def _editor(
    request: Request,
    text: str,
    status: int = 200,
    *,
    messages: list[schedule_text.Message] | None = None,
    sound: str = "",
    fault: Any = None,
    job: dict[str, str] | None = None,
    errors: dict[str, str] | None = None,
) -> HTMLResponse:
    rows = min(max(text.count("\n") + 3, _FEWEST_ROWS), _MOST_ROWS)
    return page(
        request,
        "schedule.html",
        status,
        text=text,
        rows=rows,
        messages=messages or [],
        sound=sound,
        fault=fault,
        job_fields=add_job.FIELDS,
        job=job or {},
        errors=errors or {},
        names=asking.names(),
    )


def _example() -> str:
    from planner.schedule.example import example

    return example()
