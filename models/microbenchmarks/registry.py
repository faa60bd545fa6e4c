"""Cases and suites: what is timed, and the one place where suites announce themselves.

A case is a function that takes operands and returns a call. Its work (FLOPs, bytes, op class) is not written
by hand: the call is run once on meta tensors under the tracer's own recorder, so that a microbenchmark and a
traced step count alike.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import BadData, UnknownName

if TYPE_CHECKING:
    from torch import Tensor

SUITE_VERSION = 1

Call = Callable[[], object]


class Operands(Protocol):
    """Gives out tensors for a call; a fresh take lies elsewhere in memory than the last."""

    dtype: str
    device: str

    def floats(self, *shape: int, dtype: str | None = None) -> Tensor: ...

    def integers(self, *shape: int, below: int) -> Tensor: ...

    def flush(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Work:
    """What one call does. flops [FLOP]; bytes [B], each tensor once; extra: features of a special curve."""

    op: str
    op_class: str
    shapes: tuple[tuple[int, ...], ...]
    flops: float
    bytes_read: float
    bytes_written: float
    extra: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to time. key: unique; layout: what the curve is kept apart by beside op and dtype.

    work: None where the recorder finds it. cold: time it on fresh operands too, not only on warm ones.
    flush: empty the caches before each call; such a case is timed one call at a time.
    clock: "device" or, for what the host spends, "host".
    """

    key: str
    suite: str
    dtype: str
    layout: str
    make: Callable[[Operands], Call]
    work: Work | None = None
    cold: bool = True
    flush: bool = False
    clock: str = "device"


@dataclass(frozen=True, slots=True)
class Target:
    """What the cases are made for. scale: how much larger than on one CPU thread the work should be.

    dtypes: those that matmul-like suites run in; "tf32" is float32 with TF32
        allowed. count: devices of this kind.
    """

    kind: str
    dtypes: tuple[str, ...] = ("float32",)
    scale: int = 1
    count: int = 1
    tiny: bool = False


Suite = Callable[[Target], Iterator[Case]]
SUITES: dict[str, Suite] = {}
_MODULES = (
    "matmul", "convolution", "attention", "normalisation", "elementwise", "embedding", "recurrent",
    "optimizer_step", "memory_bandwidth", "overhead", "host_to_device", "all_reduce",
)  # fmt: skip


def suite(name: str) -> Callable[[Suite], Suite]:
    """Announce a suite. Raises ValueError for a name taken."""

    def announce(function: Suite) -> Suite:
        if name in SUITES:
            raise ValueError(f'two suites are called "{name}"')
        SUITES[name] = function
        return function

    return announce


def cases(target: Target, only: tuple[str, ...] = ()) -> tuple[Case, ...]:
    """Every case of every suite (or of those named) for that target. Raises UnknownName."""
    for module in _MODULES:
        importlib.import_module(f"{__package__}.{module}")
    for name in only:
        if name not in SUITES:
            raise UnknownName("microbenchmark suite", name, SUITES, f"All suites: {', '.join(SUITES)}")
    found = tuple(case for name, make in SUITES.items() if not only or name in only for case in make(target))
    keys = [case.key for case in found]
    if len(set(keys)) != len(keys):
        twice = sorted({key for key in keys if keys.count(key) > 1})
        raise ValueError(f"microbenchmark cases of one key: {', '.join(twice[:5])}")
    return found


def work_of(case: Case) -> Work:
    """The case's work by the tracer's rules. Raises BadData where its call is not exactly one op."""
    if case.work is not None:
        return case.work
    import torch

    from ..tracing.recorder import Recorder
    from .operands import MetaOperands

    recorder = Recorder()
    with torch.device("meta"), torch.no_grad():
        call = case.make(MetaOperands(case.dtype))
        with recorder:
            recorder.start()
            kept = call()
            ops = recorder.stop().ops
    del kept
    if len(ops) != 1:
        names = ", ".join(record.kind.op for record in ops)
        raise BadData(f"microbenchmark {case.key}: must be one op, runs {len(ops)} ({names})")
    kind: Any = ops[0].kind
    return Work(
        op=kind.op,
        op_class=kind.op_class,
        shapes=kind.shapes,
        flops=kind.cost.flops,
        bytes_read=kind.cost.bytes_read,
        bytes_written=kind.cost.bytes_written,
    )
