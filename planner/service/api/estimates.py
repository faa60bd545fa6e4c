"""How fast a run is on a card, and whether it fits there."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from pydantic import Field

from planner.service.access import Identity
from planner.service.api.shapes import FAULTS, Body
from planner.service.asked import checked_names
from planner.service.room import needs, room

router = APIRouter(tags=["estimates"], responses=FAULTS)
Viewer = Annotated[Identity, Depends(needs("viewer"))]


class EstimateBody(Body):
    """One training step. batch_size: of one GPU, the micro-batch. seq_len: [tokens or pixels]"""

    model: str = Field(min_length=1, max_length=200)
    gpu: str = Field(min_length=1, max_length=200)
    precision: str | None = Field(None, max_length=40)
    batch_size: int | None = Field(None, ge=1, le=100_000)
    gpus: int = Field(1, ge=1, le=64)
    accumulation: int = Field(1, ge=1, le=10_000)
    activation_checkpointing: bool = False
    strategy: Literal["ddp", "fsdp", "zero1", "zero2", "zero3"] = "ddp"


@router.post("/estimate/{what}", summary="Speed or memory of one training step")
async def estimate(
    what: Literal["throughput", "memory"], body: EstimateBody, request: Request, who: Viewer
) -> dict[str, Any]:
    """The document of `planner estimate throughput` or `planner estimate memory`."""
    from planner import api

    asked = body.model_dump()
    checked_names(asked)
    function: Any = api.estimate_memory if what == "memory" else api.estimate_throughput
    found = await room(request).apart(function, asked.pop("model"), asked.pop("gpu"), **asked)
    document: dict[str, Any] = found.to_json()
    return document
