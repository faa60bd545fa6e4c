"""`planner breakeven`: from how much use on a rig of one's own is cheaper than renting."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.answering import answers
from planner.cli.commands import COMMANDS
from planner.cli.output import Answer

app = typer.Typer(help=COMMANDS["breakeven"].summary, add_completion=False)

Text = str | None


@app.command()
@answers
def breakeven(
    hardware: Annotated[str, typer.Option(metavar="RIG", help="The rig to own: rig-4x-rtx-4090.")],
    model: Annotated[Text, typer.Option("--model", "-m", metavar="NAME", help="For which workload.")] = None,
    epochs: Annotated[Text, typer.Option(metavar="N", help="Of one run.")] = None,
    tokens: Annotated[Text, typer.Option(metavar="N", help="Or: tokens of one run.")] = None,
    against: Annotated[
        Text,
        typer.Option(metavar="NAME", help="The machine or card to rent; else the cheapest of each kind."),
    ] = None,
    region: Annotated[list[str] | None, typer.Option(metavar="CODE", help="Rent there only.")] = None,
    electricity_price: Annotated[Text, typer.Option(metavar="AMOUNT", help="Per kWh.")] = None,
    pue: Annotated[Text, typer.Option(metavar="N", help="Facility power over IT power: 1.2.")] = None,
    assume: Annotated[list[str] | None, typer.Option(metavar="KEY=N", help="Change an assumption.")] = None,
    currency: Annotated[Text, typer.Option(metavar="CODE", help="Show money in this one.")] = None,
    fx: Annotated[list[str] | None, typer.Option(metavar="CODE=N", help="What one unit is worth.")] = None,
    as_of: Annotated[Text, typer.Option(metavar="DATE", help="Prices as known then.")] = None,
) -> Answer:
    """Runs, hours and utilization from which owning a rig beats renting, with the speed ratio in it.

    Example: planner breakeven --hardware rig-4x-rtx-4090 --model bert-large
    """
    given = locals()
    from planner import api, config
    from planner.reports.breakeven_page import breakeven_page, breakeven_rows, header

    flags = {key: given[key] for key in given if key not in ("hardware", "model", "against")}
    settings = config.merged(config.layers(flags))
    config.use_store(settings)
    # A configured model, limit or rig is for `planner optimize`: here one rig is held against renting.
    values = {key: value for key, value in config.request_values(settings).items() if key in flags}
    found = api.breakeven(hardware, model=model, against=against, **values)
    document = found.to_json()
    rows = breakeven_rows(document)
    return Answer(
        document=document,
        items=document["against"],
        rows=lambda: rows,
        table=lambda look: breakeven_page(document, look),
        title=header(document)[0],
        notes=(*header(document)[1:], *document["assumptions"]),
    )
