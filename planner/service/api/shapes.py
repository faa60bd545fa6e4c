"""What requests may say, as pydantic models; what every answer may be besides good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue, create_model

from planner.request import OptimizeRequest, request_keys


class Body(BaseModel):
    """A request body; a key that is not known is an error and never ignored."""

    model_config = ConfigDict(extra="forbid")


class Fault(BaseModel):
    """What every refusal says: which error, what happened and what to do next."""

    model_config = ConfigDict(extra="allow")
    error: str
    message: str


FAULTS: dict[int | str, dict[str, Any]] = {
    400: {"description": "Not understood"},
    401: {"model": Fault, "description": "A token is needed"},
    403: {"description": "The token's role does not allow it"},
    404: {"description": "There is none of that id, or it is somebody else's"},
    409: {"model": Fault, "description": "No plan keeps the limits; `nearest` says which would come close"},
    413: {"model": Fault, "description": "The request is too large"},
    421: {"model": Fault, "description": "The server does not answer to that host name"},
    422: {"description": "A value cannot be used; the message names it"},
    429: {"model": Fault, "description": "Too many requests"},
    503: {"model": Fault, "description": "Not now; Retry-After says when"},
}

_TEXTS = str | list[str] | None
_NUMBER = float | str | None
_KINDS: dict[str, Any] = {
    **dict.fromkeys(("gpu", "provider", "region", "own", "precision"), _TEXTS),
    **dict.fromkeys(("spot", "torch_compile"), bool | None),
    **dict.fromkeys(("fx", "assume"), dict[str, float | str] | list[str] | None),
    **dict.fromkeys(("as_of", "currency", "input_shape"), str | None),
}

_FIELDS: dict[str, Any] = {
    "model": (str, Field(min_length=1, max_length=200)),
    **{key: (_KINDS.get(key, _NUMBER), None) for key in request_keys() if key != "model"},
}

if TYPE_CHECKING:

    class OptimizeBody(Body): ...
else:
    OptimizeBody = create_model("OptimizeBody", __base__=Body, __doc__=OptimizeRequest.__doc__, **_FIELDS)
"""The keys of OptimizeRequest, checked in full by it."""


class ScheduleBody(Body):
    """A schedule as YAML text or as its values. points: most plans on the front."""

    schedule: str | dict[str, JsonValue]
    points: int = Field(12, ge=1, le=50)
    seconds: float = Field(45.0, ge=1, le=600, description="Wall time of the search [s]")


def json_bytes(body: bytes, status: int = 200) -> Response:
    """A body that is JSON already."""
    return Response(body, status, media_type="application/json")
