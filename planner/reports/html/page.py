"""The page: charts, figures and tables of one plan of a document, as one HTML text."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.errors import UsageError
from planner.reports.charts import catalogue
from planner.reports.charts.theme import THEMES, config
from planner.reports.plan_file import Document, is_schedule, name_of, number_of, plan_of

from .bundle import VEGA_LITE, vega_bundle
from .tables import amount, exact, tables

TEMPLATES = Path(__file__).parent / "templates"


def page(document: Document, point: int | None = None) -> str:
    """The whole page. point: which plan of the front (a run: the option's rank); None: the one to book.

    Same document, same text. Raises UsageError for a point that is not there, or where Jinja2, Altair or
    vl-convert is missing.
    """
    plan = plan_of(document, point)
    try:
        import altair  # noqa: F401 - asked for here, so that the message comes before any work
        import jinja2
    except ImportError as error:
        raise UsageError(
            "pages need Altair and Jinja2: pip install 'training-planner[reports]'", "reports"
        ) from error
    charts = [catalogue.chart(name, document, plan) for name in catalogue.CHARTS]
    bundle, script = vega_bundle(), (TEMPLATES / "page.js").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found: str = environment.get_template("page.html.jinja").render(
        title=_title(document),
        plan=name_of(plan),
        number=number_of(plan),
        facts=_facts(document, plan),
        warnings=list(document["warnings"]) + list(plan["notes"]),
        charts=charts,
        tables=tables(document, plan),
        style=(TEMPLATES / "page.css").read_text(encoding="utf-8"),
        specs=_inert({chart.name: chart.spec for chart in charts if chart.spec}),
        themes=_inert({theme: config(theme) for theme in THEMES}),
        bundle=bundle,
        script=script,
        policy=_policy(bundle, script),
        made=f"Vega-Lite {VEGA_LITE} is {len(bundle.encode()) / 1e6:.1f} MB of it; nothing is loaded.",
        document=document,
    )
    return found


def _policy(*scripts: str) -> str:
    """A content security policy under which only these very scripts run and nothing is fetched."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    rest = "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {hashes}; {rest}"


def _inert(values: Any) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _title(document: Document) -> str:
    if is_schedule(document):
        return str(document["name"] or "Schedule")
    job = document["job"]
    much = f"{job['epochs']:g} epochs" if job["epochs"] is not None else f"{job['tokens']:,} tokens"
    return f"{job['title']}, {much} of {job['dataset']}"


def _facts(document: Document, plan: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(label, figure, where it comes from) of the head of the page."""
    cost, hours, money = plan["cost"], plan["time_hours"], document["currency"]
    found = [
        (
            "Cost",
            f"{amount(cost['p50'])} {money}",
            f"P10 {amount(cost['p10'])}, P90 {amount(cost['p90'])}; exactly {exact(cost['p50'])}",
        ),
        ("Paid upfront", f"{amount(plan['cash_upfront'])} {money}", "before the first run begins"),
        ("Time", f"{hours['p50']:,.1f} h", f"P10 {hours['p10']:,.1f}, P90 {hours['p90']:,.1f}"),
    ]
    if is_schedule(document):
        risk = plan["risk"]
        on_time = "no deadlines" if risk["on_time"] is None else f"{risk['on_time']:.0%} on time"
        found.append(
            (
                "Finish",
                plan["finish"][:10],
                f"P10 {risk['finish_p10'][:10]}, P90 {risk['finish_p90'][:10]}; UTC",
            )
        )
        found.append(("Chance", on_time, f"{risk['draws']:,} simulated draws"))
    oldest = document["oldest_price"]
    found.append(
        ("Oldest price", oldest[:10] if oldest else "none stored", f"prices as of {document['as_of'][:10]}")
    )
    return found
