"""The schedule editor: YAML with what is wrong beside it, line by line; planning it makes a job."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from planner.errors import UsageError
from planner.service.pages import asking, schedule_text
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


def _editor(
    request: Request,
    text: str,
    status: int = 200,
    *,
    messages: list[schedule_text.Message] | None = None,
    sound: str = "",
    fault: Any = None,
) -> HTMLResponse:
    rows = min(max(text.count("\n") + 3, _FEWEST_ROWS), _MOST_ROWS)
    return page(
        request, "schedule.html", status, text=text, rows=rows, messages=messages or [], sound=sound, fault=fault
    )


def _example() -> str:
    from planner.schedule.example import example

    return example()
