"""`planner prices review`: prices that were set aside, and a person's word on them."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.answering import answers
from planner.cli.output import Answer


@answers
def review(
    id: Annotated[str | None, typer.Argument(help="A price that is set aside: the start of its id.")] = None,
    accept: Annotated[bool, typer.Option("--accept", help="Use it from now on.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Not, and not when it comes again.")] = False,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; kept with the decision.")] = None,
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Who decides, if not you.")] = None,
    log: Annotated[bool, typer.Option("--log", help="All decisions so far.")] = False,
) -> Answer:
    """Prices that wait for a second observation, and those too odd to be used; accept or reject one.

    Example: planner prices review
    """
    from planner import config
    from planner.cli.listings import listed
    from planner.errors import UsageError
    from planner.price_review import decide_price, decisions, held_prices
    from planner.reports.lists import sentence

    config.use_store()
    if id is None and (accept or reject):
        raise UsageError("which price? Say the start of its id: planner prices review", "id")
    if id is not None and accept == reject:
        raise UsageError(f"{id}: say --accept or --reject, one of them", "accept")
    if id is not None:
        done = decide_price(id, "accepted" if accept else "rejected", reason=reason or "", by=by)
        document = {"schema_version": "1.0", "kind": "decision", **done}
        text = f"{done['item']} ({done['provider']} {done['region']} {done['contract']}) "
        text += f"{done['amount'] or 'unknown'} {done['currency']}: {done['verdict']} by {done['decided_by']}"
        return Answer(
            document=document,
            items=[document],
            rows=lambda: [document],
            table=lambda look: sentence(text, look),
            title="Decision on a price",
        )
    if log:
        columns = {
            "decided_at": "DECIDED",
            "verdict": "VERDICT",
            "decided_by": "BY",
            "id": "ID",
            "decision_reason": "WHY",
        }
        return listed(decisions(), columns, "Decisions on prices", drop=("id",))
    columns = {
        "id": "ID",
        "item": "ITEM",
        "provider": "PROVIDER",
        "region": "REGION",
        "contract": "CONTRACT",
        "amount_in_use": "IN USE",
        "amount": "SET ASIDE",
        "currency": "CUR",
        "change_percent": "CHANGE, %",
        "observed_at": "SEEN",
        "reason": "WHY",
    }
    found = held_prices()
    notes = ["Use one: planner prices review ID --accept --reason TEXT"] if found.rows else []
    drop = ("observed_at", "currency", "contract", "provider", "reason")
    return listed(found, columns, "Prices set aside", drop=drop, notes=notes)
