"""Recorder: the dispatch mode that sees every aten op of a step and every storage's birth and death.

Imports torch: only tracer.py and rewrites.py import this module, inside functions.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..errors import BadConfig
from . import op_rules, op_tables
from .step_trace import Phase

# What a value-dependent question is answered when there are no values: masks mask nothing, indices are 1.
SCALAR_POLICY = "scalars read from tensors are answered True / 1: no padding, no packed sequences"


@dataclass(frozen=True, slots=True, eq=False)
class OpKind:
    """One op on one set of shapes: what all its launches share. Compared by identity."""

    op: str
    op_class: str
    shapes: tuple[op_rules.Shape, ...]
    cost: op_rules.Cost


class OpRecord(NamedTuple):
    """One launch as seen at one batch."""

    kind: OpKind
    phase: Phase


@dataclass(slots=True)
class StorageRecord:
    """One storage as seen at one batch. `key` is its address, unique only while it lives."""

    bytes: int
    phase: Phase
    op: str
    key: int
    category: str = ""


@dataclass(slots=True)
class Recording:
    """One step at one batch, before two of them are made affine."""

    ops: list[OpRecord] = field(default_factory=list)
    storages: list[StorageRecord] = field(default_factory=list)
    initially_alive: int = 0
    events: list[int] = field(default_factory=list)
    marks: list[tuple[int, Phase]] = field(default_factory=list)


class _Schema:
    """What the recorder needs to know of an overload, worked out once."""

    __slots__ = ("allocates", "foreach", "in_place", "is_view", "mutated", "op", "silent")

    def __init__(self, func: Any) -> None:
        schema = func._schema
        namespace, name = schema.name.split("::")
        self.op = name if namespace == "aten" else schema.name
        self.silent = namespace in ("prim", "profiler")
        self.foreach = self.op.startswith("_foreach_")
        self.allocates = op_rules.base_name(self.op) in op_tables.ALLOCATIONS
        self.mutated = [
            i
            for i, argument in enumerate(schema.arguments)
            if argument.alias_info and argument.alias_info.is_write
        ]
        reshapes = torch.Tag.inplace_view in func.tags or self.op in ("resize_", "resize_as_", "set_")
        self.is_view = bool(func.is_view) or (reshapes and not self.allocates)
        # Only values change, and there are none: the call can be left out.
        self.in_place = self.mutated == [0] and not reshapes and len(schema.returns) == (not self.foreach)


class _Known(NamedTuple):
    """What a call with this signature gives: (size, stride, dtype) of each output, and its kind."""

    outputs: tuple[Any, ...]
    form: Callable[[list[torch.Tensor]], Any]
    kind: OpKind | None


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows storages from the moment it is entered; records ops and events between `start` and `stop`."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.phase: Phase = "forward"
        self.scalars_answered = 0
        self._schemas: dict[Any, _Schema] = {}
        self._known: dict[Any, _Known] = {}
        # Address -> (weak reference that reports the death, record). Creation order is kept by the dict.
        self._alive: dict[int, tuple[weakref.ref[Any], StorageRecord]] = {}
        self._index: dict[int, int] = {}
        self._recording: Recording | None = None

    def start(self) -> None:
        """Begin a recording; what is alive now becomes its initial storages, in order of birth.

        The step that follows announces its phases itself.
        """
        recording = Recording(storages=[record for _, record in self._alive.values()])
        recording.initially_alive = len(recording.storages)
        self._index = {record.key: i for i, record in enumerate(recording.storages)}
        self._recording = recording

    def stop(self) -> Recording:
        """End the recording and hand it over."""
        if self._recording is None:
            raise RuntimeError("stop() without start()")
        recording, self._recording = self._recording, None
        return recording

    def enter(self, phase: Phase) -> None:
        """A phase begins."""
        self.phase = phase
        if self._recording is not None:
            self._recording.marks.append((len(self._recording.events), phase))

    def categorise(self, tensors: Iterable[torch.Tensor], category: str, only_new: bool = False) -> None:
        """File the storages of `tensors` under `category`. `only_new`: leave those already filed."""
        for tensor in tensors:
            record = self.record_of(tensor)
            if record is not None and not (only_new and record.category):
                record.category = category

    def record_of(self, tensor: torch.Tensor) -> StorageRecord | None:
        """The live storage behind a tensor; None off the traced device."""
        if tensor.device.type != "meta":
            return None
        found = self._alive.get(tensor.untyped_storage()._cdata)
        return found[1] if found else None

    def alive(self) -> Iterator[StorageRecord]:
        """Live storages in order of birth."""
        return (record for _, record in self._alive.values())

    def track(self, tensor: torch.Tensor, op: str) -> bool:
        """Follow the tensor's storage; True where it was new."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._alive:
            return False
        record = StorageRecord(storage.nbytes(), self.phase, op, key)

        def died(_: Any, key: int = key) -> None:
            self._forget(key)

        self._alive[key] = (weakref.ref(storage, died), record)
        if self._recording is not None:
            index = len(self._recording.storages)
            self._recording.storages.append(record)
            self._recording.events.append(index + 1)
            self._index[key] = index
        return True

    def add_op(self, op: str, op_class: str, shapes: tuple[op_rules.Shape, ...], cost: op_rules.Cost) -> None:
        """Record an op that has no aten name: a library kernel that stands for many aten ops."""
        if self._recording is not None:
            self._recording.ops.append(OpRecord(OpKind(op, op_class, shapes, cost), self.phase))

    def _forget(self, key: int) -> None:
        if self._alive.pop(key, None) is None or self._recording is None:
            return
        self._recording.events.append(-(self._index.pop(key) + 1))

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        schema = self._schemas.get(func)
        if schema is None:
            schema = self._schemas[func] = _Schema(func)
        if schema.is_view or schema.silent:
            return func(*args, **kwargs) if kwargs else func(*args)
        if schema.op in ("_local_scalar_dense", "equal") and args[0].is_meta:
            return self._answer(schema.op, args[0])
        signature = None if schema.foreach else _signature(func, args, kwargs)
        known = self._known.get(signature) if signature is not None else None
        if known is None:
            result, kind = self._run(schema, func, args, kwargs, signature)
        else:
            result, kind = self._repeat(schema, known, args)
        if kind is not None and self._recording is not None:
            self._recording.ops.append(OpRecord(kind, self.phase))
        return result

    def _answer(self, op: str, tensor: torch.Tensor) -> Any:
        self.scalars_answered += 1
        if op == "equal" or tensor.dtype is torch.bool:
            return True
        return 1.0 if tensor.dtype.is_floating_point else 1

    def _run(
        self, schema: _Schema, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None, signature: Any
    ) -> tuple[Any, OpKind | None]:
        """Make the call, and learn what calls with its signature give."""
        if schema.in_place and _on_meta(args[0]):
            result = None if schema.foreach else args[0]
        else:
            result = _call(func, schema.op, args, kwargs)
        outputs = _tensors((result,))
        fresh = [tensor for tensor in outputs if self.track(tensor, schema.op)]
        if outputs and not fresh and not schema.mutated:
            return result, None  # a view by another name, e.g. _unsafe_view
        kind = None if schema.allocates else _kind(schema, args, kwargs, fresh)
        if signature is not None and (known := _knowledge(schema, result, fresh, kind)) is not None:
            self._known[signature] = known
        return result, kind

    def _repeat(self, schema: _Schema, known: _Known, args: tuple[Any, ...]) -> tuple[Any, OpKind | None]:
        """The outputs again, without meta kernels: many of them are written in Python and slow."""
        if schema.in_place:
            return args[0], known.kind
        tensors = [
            torch.empty_strided(size, stride, dtype=dtype, device="meta")
            for size, stride, dtype in known.outputs
        ]
        for tensor in tensors:
            self.track(tensor, schema.op)
        return known.form(tensors), known.kind


def _call(func: Any, op: str, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    try:
        return func(*args, **kwargs) if kwargs else func(*args)
    except NotImplementedError as error:
        raise BadConfig(
            f"aten::{op} has no shape without values ({_first_line(error)}): the step depends on "
            "its data there; choose a code path with fixed shapes"
        ) from error


def _kind(
    schema: _Schema, args: tuple[Any, ...], kwargs: dict[str, Any] | None, fresh: Sequence[torch.Tensor]
) -> OpKind | None:
    inputs = _tensors(args)
    if kwargs:
        inputs += _tensors(kwargs.values())
    mutated = _tensors(args[i] for i in schema.mutated if i < len(args)) if schema.mutated else []
    if not inputs and not fresh:
        return None  # on another device, e.g. the optimizer's step counters
    call = op_rules.Call(
        schema.op,
        [_operand(tensor) for tensor in inputs],
        [_operand(tensor) for tensor in fresh],
        [_operand(tensor) for tensor in mutated],
        args,
    )
    shapes = tuple(operand.shape for operand in call.inputs)
    return OpKind(schema.op, op_rules.op_class(schema.op, call), shapes, op_rules.cost(call))


def _knowledge(
    schema: _Schema, result: Any, fresh: Sequence[torch.Tensor], kind: OpKind | None
) -> _Known | None:
    """How to give this result again; None where it is more than plain new tensors."""
    if schema.in_place:
        return _Known((), _only, kind)
    if schema.mutated or not all(_fills_storage(tensor) for tensor in fresh):
        return None
    outputs = tuple((tensor.shape, tensor.stride(), tensor.dtype) for tensor in fresh)
    if isinstance(result, torch.Tensor):
        return _Known(outputs, _only, kind) if len(fresh) == 1 else None
    if isinstance(result, tuple | list) and len(result) == len(fresh):
        return _Known(outputs, type(result), kind)
    return None


def _fills_storage(tensor: torch.Tensor) -> bool:
    """Whether empty_strided gives the same storage; efficient attention pads its bias's gradient."""
    dimensions = zip(tensor.shape, tensor.stride(), strict=True)
    reach = 1 + sum((length - 1) * stride for length, stride in dimensions)
    bytes_needed = reach * tensor.element_size() if tensor.numel() else 0
    return tensor.storage_offset() == 0 and tensor.untyped_storage().nbytes() == bytes_needed


def _only(tensors: list[torch.Tensor]) -> torch.Tensor:
    return tensors[0]


def _signature(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """All that the outputs of a call depend on; None where that cannot be told."""
    parts: list[Any] = [func]
    dimensions = 0
    scalars = False
    stack: list[Any] = [args, kwargs] if kwargs else [args]
    while stack:
        value = stack.pop()
        if isinstance(value, torch.Tensor):
            if not value.is_meta:
                if value.dim():
                    return None
                scalars = True  # a Python number in tensor's clothing
            dimensions += value.dim()
            parts.append((value.shape, value.stride(), value.dtype))
        elif isinstance(value, tuple | list):
            parts.append(len(value))
            stack.extend(value)
        elif isinstance(value, dict):
            parts.extend(value)
            stack.extend(value.values())
        else:
            parts.append((type(value), value))
    if scalars and not dimensions:
        return None  # whether a number is wrapped decides the type then
    return tuple(parts)


def _on_meta(value: Any) -> bool:
    first = value[0] if isinstance(value, list | tuple) and value else value
    return isinstance(first, torch.Tensor) and first.is_meta


def _tensors(values: Iterable[Any]) -> list[torch.Tensor]:
    """The tensors on the traced device among values and lists of values."""
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            if value.is_meta:
                found.append(value)
        elif isinstance(value, list | tuple):
            found += [item for item in value if isinstance(item, torch.Tensor) and item.is_meta]
    return found


def _operand(tensor: torch.Tensor) -> op_rules.Operand:
    shape = tuple(tensor.shape)
    elements = 1
    for length, stride in zip(shape, tensor.stride(), strict=True):
        if stride or length == 0:
            elements *= length
    return op_rules.Operand(shape, elements * tensor.element_size())


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:200]
