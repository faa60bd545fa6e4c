"""Physics of a training step: what a FLOP, a byte and a launch of each op class cost on a card.

    device = sum_c F_c / (R m e_c w) + N d
           + sum_b Y_b [ (1 - l L2/(L2 + 40 MB)) / (BW beta_b) + 1/(k SM clock) ]
           + the same for bytes that layout changes move again
    host   = O h q exp(a (year - 2021)/4)
    step   = (device^3 + host^3)^(1/3)

F_c FLOPs, Y_b bytes, N launches of the step; R the achieved matmul rate of the units in use, BW the memory
bandwidth; O the ops of the host,
q > 1 where it is busy with more. w = min(3, 0.45 W/TFLOPS)^g: a
datasheet peak assumes clocks that a low-power board cannot hold.
Host and device overlap, so the longer one decides; the third power rounds the corner.

The same functions run on numpy (planning) and torch (fitting): `xp` is the array module, and rows are cards.
Source of the form: our reference fit on throughput.csv; the coefficients absorb each other and the counting
rules of the traces, so they are no facts about hardware.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ..tracing.step_trace import BYTE_CLASSES, FLOP_CLASSES, OP_CLASSES

# Arrays of either module; their shapes are in the names' legend: N rows, F FLOP classes, C all classes.
Array = Any

UNITS: Final = ("fp32", "tf32", "half", "half_on_fp32")

# Which memory efficiency the bytes of an op class meet.
TRAFFIC: Final = (
    "matmul_io",
    "attention_map",
    "norm",
    "batch_norm",
    "elementwise",
    "conv_io",
    "embedding",
    "optimizer",
    "dequantisation",
    "layout",
)
_TRAFFIC_OF: Final = {
    **dict.fromkeys(("gemm", "attention_fused", "rnn"), "matmul_io"),
    **dict.fromkeys(("conv", "conv_1x1", "conv_grouped", "conv_stem"), "conv_io"),
    "attention_unfused": "attention_map",
    **{name: name for name in BYTE_CLASSES},
}
TRAFFIC_INDEX: Final = tuple(TRAFFIC.index(_TRAFFIC_OF[name]) for name in OP_CLASSES)
_LAYOUT: Final = TRAFFIC.index("layout")

# Groups of classes that err together; the residual model learns one multiplier for each. The FLOPs and the
# bytes of a class may belong to different groups.
GROUPS: Final = (
    "matmul",
    "attention_unfused",
    "conv",
    "memory",
    "conv_io",
    "optimizer",
    "dequantisation",
    "launch",
)
_FLOP_GROUP: Final = {
    **dict.fromkeys(("gemm", "attention_fused", "rnn"), "matmul"),
    "attention_unfused": "attention_unfused",
    **dict.fromkeys(("conv", "conv_1x1", "conv_grouped", "conv_stem"), "conv"),
}
_BYTE_GROUP: Final = {
    **dict.fromkeys(("matmul_io", "norm", "elementwise", "embedding"), "memory"),
    "attention_map": "attention_unfused",
    **dict.fromkeys(("conv_io", "batch_norm"), "conv_io"),
    "optimizer": "optimizer",
    "dequantisation": "dequantisation",
}
FLOP_GROUP_INDEX: Final = tuple(GROUPS.index(_FLOP_GROUP[name]) for name in FLOP_CLASSES)
BYTE_GROUP_INDEX: Final = tuple(GROUPS.index(_BYTE_GROUP[TRAFFIC[i]]) for i in TRAFFIC_INDEX)
LAUNCH_GROUP: Final = GROUPS.index("launch")

# What torch.compile leaves of chains of elementwise kernels and reductions, which it fuses, and of launches.
# Ours: a chain of three or so becomes one kernel. The only such
# row is nanoGPT's.
COMPILED_TRAFFIC = 0.5
COMPILED_LAUNCHES = 0.4
COMPILED_CLASSES = frozenset({"norm", "elementwise", "batch_norm"})
# What the host spends on a kernel that no gradient flows through, such as those of an update, of an op's time
# with its share of autograd: some 4 of 10 us.
BARE_OP = 0.4

L2_HALF_BYTES: Final = 40e6
CORNER: Final = 3.0


@dataclass(frozen=True, slots=True)
class Coefficients:
    """efficiency (F,), unit (4,), traffic (10,): [1]. cache, power, host_year, busy_host [1].

    issue_bytes: bytes an SM can ask for in a clock. launch_seconds: per kernel; host_seconds: per op.
    """

    efficiency: Array
    unit: Array
    traffic: Array
    cache: Array
    issue_bytes: Array
    launch_seconds: Array
    host_seconds: Array
    host_year: Array
    busy_host: Array
    power: Array


# Centres of the fit's priors, for bytes and FLOPs as our traces count them. [1 or s] A product reaches nine
# tenths of the best measured rate, or less where it is thin; a streaming kernel four fifths of the
# datasheet's bandwidth; reading and writing products hides partly behind them. A kernel takes some 5 us
# however little it does; eager torch spends about 10 us of host time on an op and its share of autograd.
PRIOR: Final[dict[str, Any]] = {
    "efficiency": [0.90, 0.35, 0.50, 0.90, 0.75, 0.15, 0.36, 0.60],
    "unit": [1.0, 1.0, 1.0, 1.2],
    "traffic": [1.35, 0.80, 0.50, 0.80, 0.80, 1.35, 0.70, 0.80, 0.17, 0.80],
    "cache": 0.10,
    "issue_bytes": 16.0,
    "launch_seconds": 5e-6,
    "host_seconds": 10e-6,
    "host_year": 0.0,
    "busy_host": 3.0,
    "power": 0.16,
}


@dataclass(frozen=True, slots=True)
class Sheet:
    """One row per card and precision, each field of shape (N,).

    rate_flops: achieved [FLOP/s]; bandwidth [B/s]; sm_clock: SMs x boost clock [1/s]; l2_bytes [B];
    log_power: log min(3, 0.45 W/TFLOPS) on matrix units, else 0; unit: index into UNITS.
    rewrites (N, C): how often layout changes move each byte of an op class again.
    """

    rate_flops: Array
    bandwidth: Array
    sm_clock: Array
    l2_bytes: Array
    log_power: Array
    unit: Array
    rewrites: Array


def seconds_per_flop(c: Coefficients, sheet: Sheet, xp: Any) -> Array:
    """(N, F). [s/FLOP]"""
    rate_n = sheet.rate_flops * c.unit[sheet.unit] * xp.exp(c.power * sheet.log_power)
    return 1.0 / (rate_n[:, None] * c.efficiency[None, :])


def seconds_per_byte(c: Coefficients, sheet: Sheet) -> Array:
    """(N, C). [s/B]"""
    missed_n = 1.0 - c.cache * sheet.l2_bytes / (sheet.l2_bytes + L2_HALF_BYTES)
    dram_nt = missed_n[:, None] / (sheet.bandwidth[:, None] * c.traffic[None, :])
    issue_n = 1.0 / (c.issue_bytes * sheet.sm_clock)
    once = dram_nt[:, list(TRAFFIC_INDEX)] + issue_n[:, None]
    return once + sheet.rewrites * (dram_nt[:, _LAYOUT] + issue_n)[:, None]


def host_seconds_per_op(c: Coefficients, software_year: Array, busy: Array, xp: Any) -> Array:
    """(N,). A trend over software vintages, learned with either sign. busy (N,): 0 or 1. [s]"""
    pace = c.host_seconds * xp.exp(c.host_year * (software_year - 2021.0) / 4.0)
    return pace * (1.0 + (c.busy_host - 1.0) * busy)


def overlap(device: Array, host: Array) -> Array:
    """Step seconds when the host runs ahead of the device. [s]"""
    return (device**CORNER + host**CORNER) ** (1.0 / CORNER)
