"""How often the dearer of two cards would be picked, as a page: the model beside rules without one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.reports.lists import listing, sentence
from planner.reports.look import Look
from planner.reports.tabular import Cell

_FIGURES = ("pairs", "mean_regret", "worst_regret", "wrong_share")
RULES = {
    "ours": "predicted speed, each card without its rows",
    "bandwidth_ratio": "ratio of memory bandwidths",
    "flops_ratio": "ratio of datasheet FLOPS",
}


def rule_rows(document: Mapping[str, Any]) -> list[dict[str, Cell]]:
    """The model and each simpler rule as rows; regrets and shares are fractions."""
    rules = {"ours": document, **document["baselines"]}
    return [{"by": name, **{key: found[key] for key in _FIGURES}} for name, found in rules.items()]


def decisions_page(document: Mapping[str, Any], look: Look) -> str:
    """The same for a reader, in percent, with the wrong picks and the cards that have no price."""
    rows = [
        {
            "by": RULES[str(row["by"])],
            "pairs": row["pairs"],
            **{key: _percent(row[key]) for key in _FIGURES[1:]},
        }
        for row in rule_rows(document)
    ]
    headings = {
        "by": "PICKED BY",
        "pairs": "PAIRS",
        "mean_regret": "MEAN REGRET",
        "worst_regret": "WORST",
        "wrong_share": "WRONG PICKS",
    }
    said = (
        f"{document['pairs']} pairs of cards measured on one workload and priced per GPU on demand "
        f"(prices as of {document['as_of'][:10]}); regret: what the pick costs more per sample"
    )
    page = sentence(said, look) + "\n" + listing(rows, headings, look, drop=("pairs",))
    if document["wrong"]:
        page += "\nWrong picks:\n" + "".join(sentence(_wrong(each), look) for each in document["wrong"])
    if document["without_price"]:
        page += "\n" + sentence(f"Left out, no price: {', '.join(document['without_price'])}", look)
    return page


def _wrong(each: Mapping[str, Any]) -> str:
    size = "" if each["size"] is None else f" {each['size']}"
    return (
        f"  {each['workload']}{size} {each['precision']}: {each['pick']} instead of {each['best']}, "
        f"{_percent(each['regret'])} dearer"
    )


def _percent(share: Any) -> str | None:
    return None if share is None else f"{share:.2%}".replace("%", " %")
