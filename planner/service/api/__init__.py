"""The API, version 1: JSON in and out, the same documents as `--format json` of the command line."""

from __future__ import annotations

from fastapi import APIRouter

from planner.service.api import admin, catalogue, estimates, jobs, plans, prices, profiles, schedules

router = APIRouter(prefix="/v1")
for _part in (plans, schedules, jobs, estimates, prices, catalogue, profiles, admin):
    router.include_router(_part.router)
