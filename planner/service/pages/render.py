"""Templates, what they may use, and what every page carries."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.responses import HTMLResponse

from planner.reports import figures

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

NAVIGATION = (
    ("/", "Plan a run"),
    ("/schedule", "Schedule"),
    ("/jobs", "Jobs"),
    ("/prices", "Prices"),
    ("/hardware", "Hardware"),
    ("/accuracy", "Accuracy"),
    ("/settings", "Settings"),
)

_BREAKS = re.compile(r"([_.](?=\w))")

STATIC = {
    "planner.css": "text/css; charset=utf-8",
    "planner.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The files that pages ask for: all there are."""


def page(request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """A page as a response. `context` is what its template names."""
    html = (
        environment()
        .get_template(template)
        .render(
            {
                "here": request.url.path,
                "navigation": NAVIGATION,
                "csrf": getattr(request.state, "csrf", ""),
                "who": getattr(request.state, "who", None),
                "errors": {},
                **context,
            }
        )
    )
    return HTMLResponse(html, status_code=status)


@cache
def environment() -> Environment:
    """Autoescaping, and strict: a name that a page forgot to give is a fault, not an empty space."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("planner.service.pages", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "money": _money,
        "money_range": _money_range,
        "hours": figures.hours,
        "share": figures.share,
        "count": figures.count,
        "age": figures.age,
        "day": lambda moment: str(moment)[:10] if moment else "–",
        "minute": lambda moment: str(moment)[:16].replace("T", " ") if moment else "–",
        "words": lambda name: str(name).replace("_", " "),
        "dashes": lambda name: str(name).replace("_", "-"),
        "plain": _plain,
        "breakable": _breakable,
    }
    made.globals["static"] = static_address
    return made


@cache
def static_file(name: str) -> bytes:
    """The bytes of one of STATIC."""
    return files("planner.service.pages").joinpath("static", name).read_bytes()


@cache
def static_address(name: str) -> str:
    """Where a page finds it; the address changes with the content, so that browsers may keep it for good."""
    return f"/static/{name}?v={hashlib.sha256(static_file(name)).hexdigest()[:12]}"


def _money(amount: str | Decimal | None) -> str:
    return "n/a" if amount is None else figures.money(Decimal(amount))


def _money_range(cost: Mapping[str, str]) -> str:
    return figures.money_range(Decimal(cost["p10"]), Decimal(cost["p90"]))


def _breakable(name: str) -> Markup:
    """A name that may be broken after its underscores and dots, as a phone needs; copied, it is whole."""
    from markupsafe import Markup, escape

    return Markup(_BREAKS.sub(r"\1<wbr>", str(escape(name))))


def _plain(value: Any) -> str:
    """A cell of a listing: unknown as a dash, lists with commas, numbers as they stand."""
    if value is None or value == "" or value == []:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else str(value)
