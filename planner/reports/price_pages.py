"""What refresh, import and verify tell a reader: a line a source, then what moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.reports.lists import listing, sentence
from planner.reports.look import Look

_MOVE_COLUMNS = {
    "what": "WHAT",
    "item": "ITEM",
    "provider": "PROVIDER",
    "region": "REGION",
    "contract": "CONTRACT",
    "amount_before": "BEFORE",
    "amount": "NOW",
    "currency": "CUR",
    "change_percent": "CHANGE, %",
}
# A first refresh may bring thousands of new prices; the other formats hold them all.
MOST_MOVES = 40


def refresh_page(document: Mapping[str, Any], look: Look) -> str:
    """Sources, then moves, then one sentence on what it means."""
    sources = document["sources"]
    text = listing(sources, {"source": "SOURCE", "said": "WHAT IT SAID"}, look) if sources else ""
    text += _moves(document["moves"], look)
    warnings = [warning for source in sources for warning in source["warnings"]]
    text += "".join(sentence(f"note: {warning}", look) for warning in warnings[:10])
    if len(warnings) > 10:
        text += sentence(f"and {len(warnings) - 10} more notes: --format json", look)
    return text + "\n" + sentence(conclusion(document), look)


def conclusion(document: Mapping[str, Any]) -> str:
    """What the exit code means, in words."""
    rows = document["rows_added"]
    stored = f"{rows} row{'' if rows == 1 else 's'} added to {document['store']}."
    if document["exit_code"] == 5:
        return f"{stored} No usable price is stored."
    names = [each["source"] for each in document["sources"] if each["status"] in ("failed", "shrunk")]
    if names:
        return f"{stored} Without an answer to use: {', '.join(names)}; their stored prices were kept."
    if asked_nobody(document):
        return f"{stored} No source could be asked; plans go on with the stored prices, ages shown."
    held = sum(move["what"] in ("waiting", "quarantined") for move in document["moves"])
    return f"{stored} {held} set aside: planner prices review" if held else stored


def asked_nobody(document: Mapping[str, Any]) -> bool:
    """Whether every source was skipped."""
    return bool(document["sources"]) and all(each["status"] == "unavailable" for each in document["sources"])


def import_page(document: Mapping[str, Any], look: Look) -> str:
    """How many offers, what moved, and each row that did not read."""
    text = sentence(
        f"{document['file']} ({document['form']}): {document['offers']} offers, "
        f"{document['rows_added']} rows added, {document['unchanged']} as before.",
        look,
    )
    text += "".join(
        sentence(f"left out: {count} x {why}", look) for why, count in document["skipped"].items()
    )
    text += "".join(sentence(f"row {bad['row']}: {bad['reason']}", look) for bad in document["bad"])
    text += "".join(sentence(f"note: {warning}", look) for warning in document["warnings"])
    return text + _moves(document["moves"], look)


def verify_page(where: str, rows: int, errors: int, findings: Sequence[Mapping[str, Any]], look: Look) -> str:
    """The findings, and what they amount to."""
    text = ""
    if findings:
        text = listing(findings, {"severity": "SEVERITY", "rule": "RULE", "message": "MESSAGE"}, look) + "\n"
    odd = len(findings) - errors
    return text + sentence(f"{where}: {rows} rows, {errors} errors, {odd} warnings.", look)


def _moves(moves: Sequence[Mapping[str, Any]], look: Look) -> str:
    if not moves:
        return ""
    # A step that was held back or made is news; the hundredth new price is not.
    order = {"changed": 0, "waiting": 1, "quarantined": 2, "conflict": 3, "rejected": 4, "gone": 5, "new": 6}
    ranked = sorted(moves, key=lambda move: order.get(move["what"], 7))
    shown = ranked[:MOST_MOVES]
    text = "\n" + listing(shown, _MOVE_COLUMNS, look, drop=("provider", "currency", "region"))
    if len(ranked) > len(shown):
        text += sentence(f"and {len(ranked) - len(shown)} more: --format json", look)
    return text
