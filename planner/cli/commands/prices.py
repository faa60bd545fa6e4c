"""`planner prices`: `list` stands here, its other commands in planner/cli/price_commands.py."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.answering import answers
from planner.cli.commands import COMMANDS
from planner.cli.output import Answer
from planner.cli.price_commands import register

app = typer.Typer(help=COMMANDS["prices"].summary, no_args_is_help=True, add_completion=False)


@app.callback()
def prices() -> None:
    """What things cost, now or then, and who said so."""


@app.command("list")
@answers
def list_(
    item: Annotated[str | None, typer.Option(help="An instance, a GPU, a part of a rig.")] = None,
    provider: Annotated[str | None, typer.Option(help="aws, gcp, azure, lambda and so on.")] = None,
    region: Annotated[str | None, typer.Option(help="The seller's own code: us-east-1.")] = None,
    contract: Annotated[str | None, typer.Option(help="on_demand, spot, purchase and so on.")] = None,
    kind: Annotated[str | None, typer.Option(help="What kind of thing is sold.")] = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="DATE", help="As known then: 2025-05-31, or RFC 3339.")
    ] = None,
) -> Answer:
    """The latest stored offer of each kind, with its source and age.

    An unknown amount is empty, never zero.

    Example: planner prices list --item p4d.24xlarge --region us-east-1
    """
    from planner import api, config
    from planner.cli.listings import listed

    config.use_store()
    columns = {
        "item": "ITEM",
        "provider": "PROVIDER",
        "region": "REGION",
        "contract": "CONTRACT",
        "amount": "AMOUNT",
        "currency": "CUR",
        "unit": "PER",
        "amount_per_gpu": "PER GPU",
        "age_days": "AGE, DAYS",
        "source": "SOURCE",
    }
    found = api.list_prices(
        item=item, provider=provider, region=region, contract=contract, kind=kind, as_of=as_of
    )
    return listed(found, columns, "Prices", drop=("source", "amount_per_gpu", "provider", "age_days"))


register(app)
