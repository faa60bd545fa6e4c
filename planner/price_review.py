"""Prices that a refresh set aside, and what a user decides on them."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from .answer import moment
from .errors import NothingStored, UsageError
from .listings import Listing

if TYPE_CHECKING:
    from .pricing.decisions import Decision, Verdict
    from .pricing.store import Known

# Characters of an id: enough to tell a billion rows apart, few enough for a column.
_SHOWN = 12


def held_prices(*, decided: bool = False) -> Listing:
    """Every price that waits for a second observation or for a person, by kind and item.

    decided: those as well that somebody rejected already. Raises NothingStored.
    """
    from .prices import opened

    with opened() as store:
        held = store.held()
    return Listing("held", tuple(_row(known) for known in held if decided or known.decision is None))


def decisions() -> Listing:
    """Everything that was ever decided, oldest first: the log. Raises NothingStored."""
    from .prices import opened

    with opened() as store:
        return Listing("decisions", tuple(_logged(each) for each in store.decisions()))


def decide_price(id: str, verdict: Verdict, *, reason: str, by: str | None = None) -> Mapping[str, Any]:
    """Accept or reject a price that was set aside; it is written down who did, when and why.

    id: of `held_prices`, or the beginning of one. by: None means the user who is logged in.
    Raises UsageError for an id that is not held or is decided so already, NothingStored.
    """
    from .prices import opened
    from .pricing.errors import StoreUnusable
    from .pricing.review import NotHeld, decide

    if not reason.strip():
        raise UsageError("say why: --reason TEXT; it is kept with the decision", "reason")
    name = " ".join((by or _login()).split())
    try:
        with opened() as store:
            known, decision = decide(
                store, id, verdict, by=name, reason=" ".join(reason.split()), now=datetime.now(UTC)
            )
    except NotHeld as error:
        raise UsageError(str(error), "id") from error
    except StoreUnusable as error:
        raise NothingStored(str(error)) from error
    return {**_row(known), **_logged(decision)}


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise UsageError("nobody is logged in by name; say who decides: --by NAME", "by") from None


def _row(known: Known) -> Mapping[str, Any]:
    held, used = known.set_aside, known.accepted
    assert held is not None
    change = None
    if used is not None and used.amount and held.amount is not None:
        change = float(round((held.amount / used.amount - 1) * 100, 1))
    return {
        "id": held.observation_id[:_SHOWN],
        "observation_id": held.observation_id,
        "item": held.item,
        "provider": held.provider,
        "region": held.region,
        "contract": held.contract,
        "amount_in_use": None if used is None or used.amount is None else f"{used.amount:f}",
        "amount": None if held.amount is None else f"{held.amount:f}",
        "currency": held.currency,
        "unit": held.unit,
        "change_percent": change,
        "observed_at": moment(held.observed_at),
        "in_use_since": moment(used.observed_at) if used else None,
        "source": held.source,
        "source_ref": held.source_ref,
        "reason": held.reason,
        "decision": known.decision.text if known.decision else None,
    }


def _logged(decision: Decision) -> Mapping[str, Any]:
    return {
        "id": decision.observation_id[:_SHOWN],
        "observation_id": decision.observation_id,
        "verdict": decision.verdict,
        "decided_at": moment(decision.decided_at),
        "decided_by": decision.decided_by,
        "decision_reason": decision.reason,
        "stored_as": decision.stored_as,
    }
