"""Rigs at hand: `--own rig-4x-rtx-4090`, or a file that describes the machine and perhaps its own rate.

    # my-rig.toml
    gpu = "RTX 4090"             # a card of the catalogue, with gpu_count and link;
    gpu_count = 4                # or hardware = "rig-4x-rtx-4090" instead of these
    link = "pcie4-no-p2p"
    cost_per_hour = 0.35         # all-in; or cost_per_month = 255.50 (a month of 730 h)
    currency = "USD"

A bare `cost` is refused: per hour and per month differ by 730 and nobody should have to guess.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from . import money
from .assumptions import HOURS_PER_MONTH
from .errors import UsageError
from .market import Market
from .models import scaling
from .models.errors import ModelsError, nearest_names
from .models.hardware import catalogue
from .options import Machine
from .request import number

_KEYS = (
    "id",
    "hardware",
    "gpu",
    "gpu_count",
    "link",
    "network",
    "cost_per_hour",
    "cost_per_month",
    "currency",
)


# It stands in tables and in the ids of options, so nothing that moves a terminal's cursor or breaks a row.
_ID = re.compile(r"\w[\w .@-]{0,63}")


@dataclass(frozen=True, slots=True)
class OwnRate:
    """The user's own all-in rate of one machine. [plan currency/h]  said: as they gave it."""

    per_hour: Decimal
    said: str
    source: str


@dataclass(frozen=True, slots=True)
class AtHand:
    """machines: what is owned, each once. counts: how many of each. rates: those with a rate of their own."""

    machines: tuple[Machine, ...]
    counts: Mapping[str, int]
    rates: Mapping[str, OwnRate]


def machine_of_rig(rig: catalogue.Rig) -> Machine:
    """A rig of the catalogue as something to run on."""
    return Machine(
        id=rig.id,
        provider="own",
        gpu=catalogue.gpu(rig.gpu),
        gpu_count=rig.gpu_count,
        link=rig.link,
        network=rig.network,
        rig=rig,
        power_limit_watts=rig.power_limit_watts,
    )


def at_hand(named: Sequence[str], market: Market) -> AtHand:
    """The rigs a user names; naming one twice means two of it.

    Raises UsageError for an unknown rig, a file that does not read, or a cost without its unit.
    """
    machines: dict[str, Machine] = {}
    counts: dict[str, int] = {}
    rates: dict[str, OwnRate] = {}
    for name in named:
        machine, rate = _from_file(Path(name), market) if _is_file(name) else (_from_catalogue(name), None)
        machines.setdefault(machine.id, machine)
        counts[machine.id] = counts.get(machine.id, 0) + 1
        if rate is not None:
            rates[machine.id] = rate
    return AtHand(tuple(machines.values()), counts, rates)


def _is_file(name: str) -> bool:
    return name.endswith((".toml", ".json")) or "/" in name


def _from_catalogue(name: str) -> Machine:
    try:
        return machine_of_rig(catalogue.rig(name))
    except ModelsError as error:
        raise UsageError(f"own = {name}: {error}; or name a rig file (.toml, .json)", "own") from error


def _from_file(path: Path, market: Market) -> tuple[Machine, OwnRate | None]:
    body = _read(path)
    for key in body:
        if key == "cost":
            raise UsageError(
                f'{path}: "cost" does not say per what; write "cost_per_hour" or "cost_per_month" (730 h)',
                "own",
            )
        if key not in _KEYS:
            near = nearest_names(key, _KEYS)
            hint = f'Did you mean "{near[0]}"?' if near else f"Known: {', '.join(_KEYS)}"
            raise UsageError(f'{path}: no key "{key}". {hint}', "own")
    machine = _machine(path, body)
    return machine, _rate(path, body, market)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        written = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            body = json.loads(written, parse_float=Decimal)
        else:
            body = tomllib.loads(written, parse_float=Decimal)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not readable as a rig file ({error})", "own") from error
    if not isinstance(body, dict):
        raise UsageError(f"{path}: a rig file holds keys and values, such as gpu and cost_per_hour", "own")
    return body


def _machine(path: Path, body: Mapping[str, Any]) -> Machine:
    name = str(body.get("id", path.stem))
    if not _ID.fullmatch(name):
        raise UsageError(
            f"{path}: id = {name}: must be up to 64 letters, digits and . _ - @ or blanks", "own"
        )
    try:
        if "hardware" in body:
            return replace(machine_of_rig(catalogue.rig(str(body["hardware"]))), id=name)
        if "gpu" not in body:
            raise UsageError(f'{path}: "gpu" or "hardware" is missing', "own")
        gpu_count = number(body.get("gpu_count", 1))
        if gpu_count != gpu_count.to_integral_value() or not 1 <= gpu_count <= 1024:
            raise UsageError(f"{path}: gpu_count = {gpu_count} must be a whole number from 1 to 1,024", "own")
        card = catalogue.gpu(str(body["gpu"]))
        link = str(body.get("link", "none" if gpu_count == 1 else usual_link(card)))
        network = str(body.get("network", "none"))
        for joined in {link, network} - {"none"}:
            scaling.link(joined)
        if "cost_per_hour" not in body and "cost_per_month" not in body:
            raise UsageError(
                f'{path}: without "hardware" (a rig of the catalogue) it needs a "cost_per_hour" or '
                '"cost_per_month"',
                "own",
            )
        return Machine(name, "own", card, int(gpu_count), link, network)
    except (ModelsError, ValueError) as error:
        raise UsageError(f"{path}: {error}", "own") from error


def usual_link(card: catalogue.Gpu) -> str:
    """What joins such cards: as in the first rig or instance with several, else PCIe of their generation."""
    machines: list[catalogue.Rig | catalogue.Instance] = [*catalogue.rigs(), *catalogue.instances()]
    for machine in machines:
        if machine.gpu == card.id and machine.gpu_count > 1:
            return machine.link
    return f"pcie{min(5, max(3, card.pcie_generation))}" if card.peer_to_peer else "pcie4-no-p2p"


def _rate(path: Path, body: Mapping[str, Any], market: Market) -> OwnRate | None:
    given = [key for key in ("cost_per_hour", "cost_per_month") if key in body]
    if not given:
        return None
    if len(given) > 1:
        raise UsageError(f'{path}: give "cost_per_hour" or "cost_per_month", not both', "own")
    key = given[0]
    try:
        amount = number(body[key])
    except ValueError as error:
        raise UsageError(f"{path}: {key} = {body[key]}: {error}", "own") from error
    if not 0 < amount <= 10**9:
        raise UsageError(f"{path}: {key} = {amount:f} must be above 0", "own")
    currency = str(body.get("currency", market.currency)).upper()
    rate = market.rate(currency)
    if rate is None:
        raise UsageError(
            f"{path}: {key} is in {currency}; give --fx {currency}=RATE to {market.currency}", "own"
        )
    hours = Decimal(1) if key == "cost_per_hour" else HOURS_PER_MONTH
    per_hour = money.price(money.divided(money.product(amount, rate.value), hours))
    if per_hour == 0:
        raise UsageError(f"{path}: {key} = {amount:f} is less than can be counted", "own")
    said = f"{money.text(amount)} {currency} per {'hour' if hours == 1 else f'month of {hours} h'}"
    return OwnRate(per_hour, said, str(path.name))
