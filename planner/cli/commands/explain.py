"""`planner explain PLAN`: why a kept plan is what it is."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.answering import answers
from planner.cli.commands import COMMANDS
from planner.cli.output import Answer

app = typer.Typer(help=COMMANDS["explain"].summary, add_completion=False)


@app.command()
@answers
def explain(
    plan: Annotated[str, typer.Argument(metavar="PLAN.json", help="A plan of either kind.")],
    point: Annotated[str | None, typer.Option(help="Which plan of the file; else the one to book.")] = None,
    seconds: Annotated[
        str | None, typer.Option(metavar="S", help="Most wall time of each search of a schedule: 6.")
    ] = None,
) -> Answer:
    """Which limit binds, what an hour, a GPU or a kWh is worth, and which inputs matter most.

    Limits are moved one at a time and the cheapest plan is sought again from
    the stored prices; inputs are moved while the plan is kept as it is.

    Example: planner explain plan.json --point 3
    """
    from planner import api, config
    from planner.cli.reporting.point import number_of_plan
    from planner.cli.scheduling import Progress
    from planner.reports.plan_explanation import explanation_page, explanation_rows, notes

    config.use_store()
    found = api.explain_plan(plan, point=number_of_plan(point), seconds=seconds, progress=Progress())
    document = found.to_json()
    return Answer(
        document=document,
        items=explanation_rows(document),
        rows=lambda: explanation_rows(document),
        table=lambda look: explanation_page(document, look),
        title=f"Why {document['plan']}",
        notes=notes(document),
    )
