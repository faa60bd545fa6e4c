"""What a plan is asked for: every key with its unit, its range and the message it is refused with.

A plain frozen dataclass: importing pydantic takes 0.20 s of CPU (0.15 the library, 0.05 building this one
model; measured 2026-12-01), a quarter of what a warm plan may take, and every check here is our own anyway.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from .errors import UsageError

Convert = Callable[[Any], Any]

_SPAN = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(m|min|h|d|w)\s*$")
_HOURS = {"m": Decimal(1) / 60, "min": Decimal(1) / 60, "h": Decimal(1), "d": Decimal(24), "w": Decimal(168)}
_MONTHS = re.compile(r"^\s*(\d+)\s*(m|mo|months?|y|years?)?\s*$")
_PAIR = re.compile(r"^\s*([A-Za-z_]\w*)\s*=\s*(\S+)\s*$")
# A run longer than ten years or a price past a thousand billion is a slip of the keyboard.
_LONGEST_HOURS = Decimal(87_600)
# Exact sums hold numbers of so many places (money.py); binary fractions come with 17 or 18.
_PLACES = 18
_STEP = Decimal(1).scaleb(-_PLACES)
_LARGEST = Decimal(10) ** 20
_DEAREST = Decimal(10) ** 12


def number(value: Any) -> Decimal:
    """A finite decimal out of text or a number, rounded to 18 decimals. Raises ValueError that says why.

    Its size is looked at before anything is done with it: 1e999999999 printed in full is a gigabyte.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise ValueError("must be a number")
    try:
        found = Decimal(str(value).replace("_", "").strip())
    except InvalidOperation as error:
        raise ValueError("must be a number") from error
    if not found.is_finite():
        raise ValueError("must be a finite number")
    if found.copy_abs() >= _LARGEST:
        raise ValueError("is far too large")
    return found if found == found.to_integral_value() else _rounded(found)


def _rounded(value: Decimal) -> Decimal:
    places = -int(value.as_tuple().exponent)
    return value if places <= _PLACES else value.quantize(_STEP, context=Context(prec=40))


def _between(low: str, high: str, why: str = "") -> Convert:
    lowest, highest = Decimal(low), Decimal(high)

    def check(value: Any) -> Any:
        found = number(value)
        if not lowest <= found <= highest:
            raise ValueError(f"must lie between {lowest:f} and {highest:f}{why}")
        return found

    return check


def _whole(low: int, high: int, why: str = "") -> Convert:
    def check(value: Any) -> Any:
        found = number(value)
        if found != found.to_integral_value():
            raise ValueError("must be a whole number")
        if not low <= found <= high:
            raise ValueError(f"must lie between {low:,} and {high:,}{why}")
        return int(found)

    return check


def span_hours(value: Any) -> Decimal:
    """Hours out of `90m`, `6h`, `3d` or `2w`. Raises ValueError."""
    match = _SPAN.match(f"{value:f}h" if isinstance(value, Decimal) else str(value))
    if not match:
        raise ValueError('must be a span such as "90m", "6h", "3d" or "2w"')
    hours = Decimal(match[1]) * _HOURS[match[2]]
    if not 0 < hours <= _LONGEST_HOURS:
        raise ValueError(f"must be longer than nothing and at most {_LONGEST_HOURS:f} h")
    return hours


def instant(value: Any) -> datetime:
    """A moment in UTC out of RFC 3339 text, or a date, which means its last second. Raises ValueError."""
    if isinstance(value, datetime):
        found = value
    elif isinstance(value, date):
        return datetime.combine(value, time(23, 59, 59), UTC)
    else:
        written = str(value).strip()
        try:
            if len(written) == 10:
                return instant(date.fromisoformat(written))
            found = datetime.fromisoformat(written)
        except ValueError as error:
            raise ValueError(
                'must be a date such as "2026-06-30" or an instant such as "2026-06-30T18:00:00Z"'
            ) from error
    if found.tzinfo is None:
        raise ValueError('needs a time zone, for instance "Z" for UTC')
    return found.astimezone(UTC)


def _deadline(value: Any) -> Any:
    if isinstance(value, datetime):
        return instant(value)
    if isinstance(value, Decimal) or _SPAN.match(str(value)):
        return span_hours(value)
    try:
        return instant(value)
    except ValueError as error:
        raise ValueError(
            'must be a span such as "6h" or "3d", or an instant such as "2026-12-24T18:00:00Z"'
        ) from error


def _months(value: Any) -> Any:
    match = _MONTHS.match(str(value))
    if not match or isinstance(value, bool):
        raise ValueError('must be whole months, or text such as "24m" or "2y"')
    months = int(match[1]) * (12 if (match[2] or "m").startswith("y") else 1)
    if not 1 <= months <= 120:
        raise ValueError("must lie between 1 and 120 months")
    return months


def _texts(value: Any) -> Any:
    if not isinstance(value, str | list | tuple):
        raise ValueError("must be a name or a list of names")
    found = tuple(value.split(",")) if isinstance(value, str) else tuple(value)
    if any(not isinstance(item, str) or not item.strip() for item in found):
        raise ValueError("must be names, none of them empty")
    return tuple(item.strip() for item in found)


def _pairs(value: Any) -> Any:
    """A mapping out of {"CNY": 0.14} or ["CNY=0.14", …]."""
    if isinstance(value, Mapping):
        return dict(value)
    if not isinstance(value, str | list | tuple):
        raise ValueError("must be KEY=NUMBER, or a list of such")
    found: dict[str, str] = {}
    for item in (value,) if isinstance(value, str) else value:
        match = _PAIR.match(item) if isinstance(item, str) else None
        if not match:
            raise ValueError(f'"{item}" is not KEY=NUMBER')
        found[match[1]] = match[2]
    return found


def _rates(value: Any) -> Any:
    found: dict[str, Decimal] = {}
    for key, rate in _pairs(value).items():
        currency = _currency(key)
        amount = number(rate)
        if not 0 < amount <= _DEAREST:
            raise ValueError(f"the rate of {currency} must be above 0")
        found[currency] = amount
    return found


def _numbers(value: Any) -> Any:
    return {str(key): number(amount) for key, amount in _pairs(value).items()}


def _currency(value: Any) -> str:
    written = str(value).strip().upper()
    if not re.fullmatch(r"[A-Z]{3}", written):
        raise ValueError('must be a three-letter currency code such as "USD"')
    return written


def _precisions(value: Any) -> Any:
    from planner.models.errors import ModelsError
    from planner.models.precision import precision

    names = _texts(value)
    for name in names:
        try:
            precision(name)
        except ModelsError as error:
            raise ValueError(str(error)) from error
    return names


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a name or a path")
    return value.strip()


def _flag(value: Any) -> bool:
    written = str(value).strip().casefold()
    if written in ("true", "yes", "on", "1"):
        return True
    if written in ("false", "no", "off", "0"):
        return False
    raise ValueError("must be true or false")


_COUNT = 10**12

# How each key is read; None always means the default.
CONVERT: dict[str, Convert] = {
    "model": _name,
    "epochs": _between("0.000001", "1000000", " epochs"),
    "tokens": _whole(1, 10**16, " tokens"),
    "dataset_samples": _whole(1, _COUNT),
    "batch_size": _whole(1, 10_000_000),
    "seq_len": _whole(1, 10_000_000),
    "input_shape": _name,
    "vocab_size": _whole(1, 10_000_000),
    "sample_cpu_seconds": _between("0", "3600", " seconds"),
    "cores_per_gpu": _whole(1, 1024),
    "sample_bytes": _between("0", "1000000000000", " bytes"),
    "storage_bytes_per_second": _between("1", "1000000000000000", " bytes a second"),
    "torch_compile": _flag,
    "gpu": _texts,
    "provider": _texts,
    "region": _texts,
    "own": _texts,
    "precision": _precisions,
    "budget": _between("0.000001", "1000000000000"),
    "deadline": _deadline,
    "confidence": _between("50", "99.9", " percent"),
    "horizon": _months,
    "utilization": _between("0.001", "1", " (a share: 0.5 is half of all hours)"),
    "electricity_price": _between("0", "1000", " per kWh"),
    "pue": _between("1", "5", " (facility power over IT power)"),
    "spot": _flag,
    "max_gpus": _whole(1, 65_536),
    "currency": _currency,
    "fx": _rates,
    "as_of": instant,
    "seed": _whole(0, 2**32 - 1),
    "max_price_age": span_hours,
    "assume": _numbers,
}


@dataclass(frozen=True, kw_only=True)
class OptimizeRequest:
    """One training run to plan, with its limits. Raises UsageError naming every value it cannot use.

    model: a workload id or alias, the path of a transformers config.json, or "package.module:factory".
    epochs or tokens: how much to train, one of them; None: the epochs of the reference run.
    dataset_samples: samples of one epoch; None: the reference run's. [1]
    batch_size: global batch, samples of one optimizer step; None: the reference run's. [1]
    seq_len: tokens of a sample (or image side); None: the reference run's. [tokens or pixels]
    input_shape, vocab_size: of a factory's model: one sample without its batch, such as "3x224x224"; with a
        vocabulary, token ids such as "512".
    sample_cpu_seconds: what reading, decoding or tokenising a sample costs one CPU core [s]; cores_per_gpu:
        that load samples for each GPU, None: the machine's own.
    sample_bytes: read from storage for a sample [B]; storage_bytes_per_second: of one machine. [B/s]
    torch_compile: steps run through torch.compile.
    gpu, provider, region, precision: keep only these; empty: all.
    own: rigs at hand: catalogue ids, or rig files (`cost_per_hour` or `cost_per_month`).
    budget: most the run may cost. [currency]
    deadline: hours from now (given as "6h", "3d"), or an instant (RFC 3339).
    confidence: limits are compared with that percentile instead of the central estimate. [percent]
    horizon: a rig bought now is sold after that many months and the sale is netted. [months]
    utilization: share of its life a bought rig works; for `amortised`. (0, 1]
    electricity_price: [currency/kWh]   pue: facility power over IT power, >= 1.
    spot: True: spot offers alone, False: none, None: both.
    max_gpus: most GPUs of one option.
    fx: what one unit of another currency is worth in `currency`; also as ["CNY=0.14", …].
    as_of: use prices observed up to then; a date means its last second (UTC). seed: of the simulation.
    max_price_age: older prices are excluded (given as "30d"); None: age is only shown. [h]
    assume: changes entries of planner/data/assumptions.toml; also as ["KEY=NUMBER", …].

    >>> OptimizeRequest(model="bert-base", deadline="3d").deadline
    Decimal('72')
    """

    model: str
    epochs: Decimal | None = None
    tokens: int | None = None
    dataset_samples: int | None = None
    batch_size: int | None = None
    seq_len: int | None = None
    input_shape: str | None = None
    vocab_size: int | None = None
    sample_cpu_seconds: Decimal | None = None
    cores_per_gpu: int | None = None
    sample_bytes: Decimal | None = None
    storage_bytes_per_second: Decimal | None = None
    torch_compile: bool = False
    gpu: tuple[str, ...] = ()
    provider: tuple[str, ...] = ()
    region: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    precision: tuple[str, ...] = ()
    budget: Decimal | None = None
    deadline: Decimal | datetime | None = None
    confidence: Decimal | None = None
    horizon: int | None = None
    utilization: Decimal = Decimal("0.5")
    electricity_price: Decimal | None = None
    pue: Decimal | None = None
    spot: bool | None = None
    max_gpus: int = 16
    currency: str = "USD"
    fx: Mapping[str, Decimal] = field(default_factory=dict)
    as_of: datetime | None = None
    seed: int = 0
    max_price_age: Decimal | None = None
    assume: Mapping[str, Decimal] = field(default_factory=dict)

    def __post_init__(self) -> None:
        wrong: dict[str, str] = {}
        for key in fields(self):
            value = getattr(self, key.name)
            try:
                converted = _default(key) if value is None else CONVERT[key.name](value)
            except ValueError as error:
                wrong[key.name] = f"{key.name} = {_shown(value)}: {error}"
            else:
                object.__setattr__(self, key.name, converted)
        if self.epochs is not None and self.tokens is not None:
            wrong.setdefault("tokens", "give epochs or tokens, not both")
        if wrong:
            raise UsageError("\n".join(wrong.values()), next(iter(wrong)))

    @classmethod
    def of(cls, **values: Any) -> OptimizeRequest:
        """A request from values whose keys may be misspelt. Raises UsageError naming the nearest key."""
        known = request_keys()
        for key in values:
            if key not in known:
                raise UsageError(f'no key "{key}"{_did_you_mean(key, known)}', key)
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """The keys that are not at their default, as plain values that `of` reads back."""
        found = {}
        for key in fields(self):
            value = getattr(self, key.name)
            default = None if key.default is MISSING and key.default_factory is MISSING else _default(key)
            if value is not None and value != default:
                found[key.name] = _plain(value, span=key.name in ("deadline", "max_price_age"))
        return found

    def deadline_hours(self, now: datetime) -> Decimal | None:
        """Hours from `now` to the deadline; None without one. Raises UsageError where it has passed."""
        if not isinstance(self.deadline, datetime):
            return self.deadline
        left = Decimal(str((self.deadline - now) / timedelta(hours=1)))
        if left <= 0:
            raise UsageError(f"deadline = {self.deadline:%Y-%m-%dT%H:%M:%SZ} has passed", "deadline")
        return left


def _plain(value: Any, span: bool = False) -> Any:
    if isinstance(value, Decimal):
        return f"{value:f}h" if span else f"{value:f}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%SZ}"
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return list(value) if isinstance(value, tuple) else value


def request_keys() -> tuple[str, ...]:
    """Every key of a request, in order: the names of flags, configuration keys and variables."""
    return tuple(key.name for key in fields(OptimizeRequest))


def _default(key: Field[Any]) -> Any:
    if key.default_factory is not MISSING:
        return key.default_factory()
    if key.default is MISSING:
        raise ValueError("is needed")
    return key.default


def _did_you_mean(key: str, known: tuple[str, ...]) -> str:
    from planner.models.errors import nearest_names

    near = nearest_names(key, known)
    return f'. Did you mean "{near[0]}"?' if near else ""


def _shown(value: Any) -> str:
    listed = isinstance(value, list | tuple)
    shown = ", ".join(map(str, value)) if listed else str(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
