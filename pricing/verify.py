"""Whether a store or a file holds what price data must hold: invariants, hashes, raw answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import checks
from .errors import StoreUnusable
from .offer import Offer
from .store import PriceStore


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong ("error") or odd ("warning"). item: whose price; None for the store itself."""

    rule: str
    severity: str
    item: str | None
    message: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What was looked at, and what was found."""

    where: str
    rows: int
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> int:
        """How many findings forbid the use of the data."""
        return sum(found.severity == "error" for found in self.findings)

    @property
    def warnings(self) -> int:
        """How many findings only ask for a look."""
        return len(self.findings) - self.errors


def verify_store(store: PriceStore) -> Verified:
    """Look at every row, item by item, so that a long history fits into memory.

    A row whose stored hash is not that of its fields was changed after it was written: by hand, or by a disk.
    """
    damage = store.damage()
    if damage is not None:
        return Verified(store.where, 0, (Finding("file", "error", None, f"{store.where}: {damage}"),))
    findings: list[Finding] = []
    rows = 0
    if lost := store.lost_rows():
        findings.append(
            Finding(
                "lost", "error", None, f"{store.where}: {lost} rows are of no price in its list of prices"
            )
        )
    accepted = frozenset(each.stored_as for each in store.decisions() if each.stored_as is not None)
    for item in store.items:
        try:
            offers = []
            for observation_id, price_id, offer in store.stored(item):
                rows += 1
                offers.append(offer)
                findings += _hashes(observation_id, price_id, offer)
        except StoreUnusable as error:
            findings.append(Finding("row", "error", item, str(error)))
            continue
        findings += _invariants(offers, accepted)
        findings += _answers(store, offers)
    return Verified(store.where, rows, tuple(findings))


def verify_file(path: Path) -> Verified:
    """The invariants over a price file of our own form. Raises BadPriceFile."""
    from .csv_files import read_offers

    offers = read_offers(path)
    return Verified(str(path), len(offers), tuple(_invariants(offers)))


def _invariants(offers: Iterable[Offer], accepted: frozenset[str] = frozenset()) -> Iterator[Finding]:
    """accepted: ids of rows that a person accepted: how far they jumped is known."""
    for found in checks.verify(offers):
        by_hand = found.rule == "jump" and found.offer.observation_id in accepted
        severity = "warning" if by_hand else found.severity
        yield Finding(found.rule, severity, found.offer.item, found.message)


def _hashes(observation_id: str, price_id: str, offer: Offer) -> Iterator[Finding]:
    if offer.observation_id != observation_id or offer.price_id != price_id:
        message = f"{offer.where}: the row of {offer.observed_at:%Y-%m-%d} was changed after it was written"
        yield Finding("hash", "error", offer.item, message)


def _answers(store: PriceStore, offers: Iterable[Offer]) -> Iterator[Finding]:
    """Prices whose raw answer is no longer there cannot be traced back; one finding an answer."""
    answers = store.raw_answers
    if answers is None:
        return
    wanted = {offer.raw_sha256: offer for offer in offers if offer.raw_sha256 is not None}
    for sha256, offer in sorted(wanted.items()):
        if not answers.has(sha256):
            message = (
                f"{offer.where}: the answer it was read from ({sha256[:12]}…) is not in {answers.folder}"
            )
            yield Finding("raw-answer", "warning", offer.item, message)
