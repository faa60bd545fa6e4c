"""The pages: server-rendered, the same answers as the command line and the API, no script needed."""

from __future__ import annotations

from fastapi import APIRouter

from planner.service.pages import (
    accuracy,
    hardware,
    prices,
    run_plan,
    schedule,
    settings,
    start,
    static_files,
)

router = APIRouter(include_in_schema=False)
for _pages in (start, run_plan, schedule, prices, hardware, accuracy, settings, static_files):
    router.include_router(_pages.router)
