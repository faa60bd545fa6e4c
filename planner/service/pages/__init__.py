"""The pages: server-rendered, the same answers as the command line and the API, no script needed."""

from __future__ import annotations

from fastapi import APIRouter, Depends

from planner.service.forms import check_form
from planner.service.pages import (
    accuracy,
    hardware,
    jobs,
    prices,
    run_plan,
    schedule,
    settings,
    sign_in,
    start,
    static_files,
)

router = APIRouter(include_in_schema=False, dependencies=[Depends(check_form)])
for _pages in (start, run_plan, schedule, jobs, sign_in, prices, hardware, accuracy, settings, static_files):
    router.include_router(_pages.router)
