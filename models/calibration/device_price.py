"""A traced step priced op by op on a device profile.

Tier "profile": by the profile's curves; "replay": by the step's own ops, timed on the device. On a CPU the
step is the sum of its ops. On a card each phase takes what the slower of host and device takes, so that
launch-bound steps come out flat in the batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from ..microbenchmarks.optimizer_step import mix_terms
from ..tracing.step_trace import OpRow, StepTrace
from .anchors import group_of
from .device_curves import PRODUCT_OPS, Curves
from .device_profile import DeviceProfile

# 80 % bands. An assumption for now: eight CPU steps (accuracy_cpu.py) were off by up to 14 % by the curves;
# too few to learn a band from, and replay has been held against none of them yet.
BANDS = {"profile": 0.15, "replay": 0.12}
# Dropouts from here on are priced as a coin.
_COIN = 0.3
LAUNCH, OTHER = "launch", "module calls"
_DTYPES = {"fp32": "float32", "tf32": "tf32", "fp16-amp": "float16", "bf16-amp": "bfloat16"}
_DTYPES |= {"fp16": "float16", "bf16": "bfloat16"}

Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class OpPrice:
    """One row of a trace. seconds: of all its launches; how: "curve", "class" or "replay"."""

    row: OpRow
    seconds: float
    how: str


@dataclass(frozen=True, slots=True)
class DevicePrice:
    """step_seconds with an 80 % band. [s]

    breakdown: (op class, phase, seconds), adding up to step_seconds. coverage: share of the time priced by an
    op that was measured, not by the median of its class.
    """

    step_seconds: float
    low_seconds: float
    high_seconds: float
    tier: str
    breakdown: tuple[tuple[str, str, float], ...]
    coverage: float
    ops: tuple[OpPrice, ...]
    notes: tuple[str, ...]


def price_step(
    trace: StepTrace,
    batch: int,
    profile: DeviceProfile,
    *,
    precision: str = "fp32",
    optimizer: str | None = None,
    replayed: Mapping[OpRow, float] | None = None,
    dropout: float = 0.1,
) -> DevicePrice:
    """Seconds of one step of `trace` at that micro-batch on the profile's device.

    optimizer: a kind the profile measured ("adamw-loop"); None: the trace's own; "none": no update.
    replayed: rows whose one launch was timed here -> seconds.
    What real steps taught (anchors.py) is in the price, but not in that of replayed ops.
    dropout: the probability of the step's dropouts, which a trace does not hold; a CPU's masks cost by it.
    """
    curves = Curves(profile.fits)
    dtype = _DTYPES[precision]
    on_card = profile.device["kind"] == "cuda"
    prices = [
        _row_price(curves, row, batch, trace.batches[1], dtype, replayed or {}, dropout)
        for row in trace.ops
        if row.phase != "optimizer"
    ]
    seconds: dict[tuple[str, str], float] = defaultdict(float)
    for price in prices:
        seconds[price.row.op_class, price.row.phase] += price.seconds
    for phase in ("forward", "backward"):
        calls = sum(price.row.count for price in prices if price.row.phase == phase)
        spent = calls * curves.per_op_seconds
        if on_card:
            device = sum(value for (_, found), value in seconds.items() if found == phase)
            spent = max(0.0, calls * profile.fits["overhead"].get("chain", 0.0) - device)
        if spent:
            seconds[LAUNCH if on_card else OTHER, phase] += spent
    notes = []
    kind = trace.variant.optimizer if optimizer is None else optimizer
    if kind != "none":
        update = curves.optimizer_seconds(
            kind, mix_terms(gradient_sizes(trace), untouched_elements(trace, batch))
        )
        if update is None:
            notes.append(f'the profile has no optimizer "{kind}": its update is not counted')
        else:
            seconds["optimizer", "optimizer"] += update
    learned: Mapping[str, float] = profile.fits.get("multipliers", {}).get("values", {})
    for (name, phase), value in seconds.items():
        seconds[name, phase] = value * (1.0 if replayed else learned.get(group_of(name), 1.0))
    total = sum(seconds.values())
    measured = sum(price.seconds for price in prices if price.how != "class")
    of_ops = sum(price.seconds for price in prices)
    tier = "replay" if replayed else "profile"
    band = BANDS[tier]
    return DevicePrice(
        step_seconds=total,
        low_seconds=total * (1 - band),
        high_seconds=total * (1 + band),
        tier=tier,
        breakdown=tuple((name, phase, value) for (name, phase), value in seconds.items()),
        coverage=measured / of_ops if of_ops else 1.0,
        ops=tuple(prices),
        notes=tuple(notes),
    )


def gradient_sizes(trace: StepTrace) -> list[int]:
    """Elements of each tensor the optimizer updates: each has one gradient."""
    found = [storage.bytes.constant for storage in trace.storages if storage.category == "gradients"]
    item = trace.gradient_bytes / max(1, trace.trainable_parameters)
    return [round(size / item) for size in found]


def untouched_elements(trace: StepTrace, batch: int) -> int:
    """Elements of embedding tables whose rows no token of the step looks up: their gradient is zero.

    A table tied to the output layer gets a whole gradient there: it has more gradients written than kept.
    """
    found = 0
    for row in trace.ops:
        if row.op != "embedding_dense_backward":
            continue
        table = row.bytes_written.constant / row.count
        kept = sum(1 for s in trace.storages if s.category == "gradients" and s.bytes.constant == table)
        written = sum(
            other.count
            for other in trace.ops
            if other.phase == "backward"
            and other.op in (*PRODUCT_OPS, "embedding_dense_backward")
            and other.bytes_written.constant == table * other.count
        )
        if written <= kept:
            touched = row.bytes_read.at(batch) / row.count  # gradient rows, and their ids
            found += row.count * max(0, round((table - touched) / 4))
    return found


def _row_price(
    curves: Curves,
    row: OpRow,
    batch: int,
    traced: int,
    dtype: str,
    replayed: Mapping[OpRow, float],
    dropout: float,
) -> OpPrice:
    calls = calls_of(row)
    timed = replayed.get(row)
    if timed is not None:
        return OpPrice(row, timed * calls, "replay")
    flops, read, written = (
        value.at(batch) / calls for value in (row.flops, row.bytes_read, row.bytes_written)
    )
    one, how = curves.op_seconds(
        row.op,
        row.op_class,
        dtype,
        layout_of(row, dropout),
        shapes_at(row, batch, traced),
        flops,
        read,
        written,
    )
    return OpPrice(row, one * calls, how)


def calls_of(row: OpRow) -> int:
    """Calls into torch. A recurrent library call is counted by the tracer as its launches."""
    if row.op_class == "rnn":
        shapes = shapes_in(row.shape)
        directions = 2 if "backward" in row.op else 1
        time, layers = (shapes[0][0], _layers(shapes))
        return max(1, row.count // max(1, time * layers * directions))
    return row.count


def _layers(shapes: Shapes) -> int:
    """Layers x directions: the first dimension of the first state, which lies beside the sequence."""
    batch = shapes[0][1]
    for shape in shapes[1:]:
        if len(shape) == 3 and shape[1] == batch and shape[0] != shapes[0][0]:
            return shape[0]
    return 1


def shapes_in(text: str) -> Shapes:
    """The shapes that a trace row shows: "4x512x768, 768" -> ((4, 512, 768), (768,)).

    >>> shapes_in("4x8, scalar")
    ((4, 8), ())
    """
    found = []
    for part in text.split(", "):
        if part.startswith("…"):
            break
        found.append(() if part in ("scalar", "") else tuple(int(side) for side in part.split("x")))
    return tuple(found)


def shapes_at(row: OpRow, batch: int, traced: int) -> Shapes:
    """The row's shapes at another batch than the traced one; only FLOP-bearing rows are scaled.

    What grows with the batch is told from the affine sizes: a product whose output grows has more rows, one
    whose output does not (a weight gradient) has a longer inner dimension.
    """
    shapes = shapes_in(row.shape)
    before = row.flops.at(traced)
    if batch == traced or before <= 0:
        return shapes
    ratio = row.flops.at(batch) / before
    if row.op in PRODUCT_OPS and len(shapes[-1]) == 2:
        first = len(shapes) - 2
        a, b = shapes[first], shapes[first + 1]
        if row.bytes_written.per_sample:
            a = (round(a[0] * ratio), a[1])
        else:
            a, b = (a[0], round(a[1] * ratio)), (round(b[0] * ratio), b[1])
        return (*shapes[:first], a, b)
    grow = 2 if row.op_class.startswith("conv") and "backward" in row.op else 1
    if row.op in PRODUCT_OPS:
        grow = len(shapes)
    scaled = [(round(s[0] * ratio), *s[1:]) if s and i < grow else s for i, s in enumerate(shapes)]
    return tuple(scaled)


def layout_of(row: OpRow, dropout: float = 0.1) -> str:
    """How the operands of a product lie, told from where it stands in the step of a linear layer."""
    if row.op_class.startswith("conv"):
        return "channels_first"
    if row.op_class == "attention_fused":
        return "causal" if "causal" in row.rule else "full"
    if row.op not in PRODUCT_OPS:
        return "half" if row.op == "bernoulli_" and dropout >= _COIN else ""
    if row.phase == "forward":
        return "nt"
    return "nn" if row.bytes_written.per_sample else "tn"
