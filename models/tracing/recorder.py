"""Recorder: the dispatch mode that sees every aten op of a step and every storage's birth and death.

Imports torch: only tracer.py and rewrites.py import this module, inside functions.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..errors import BadConfig
from . import op_rules, op_tables
from .step_trace import Phase

# What a value-dependent question is answered when there are no values: masks mask nothing, indices are 1.
SCALAR_POLICY = "scalars read from tensors are answered True / 1: no padding, no packed sequences"


@dataclass(slots=True)
class OpRecord:
    """One launch as seen at one batch."""

    op: str
    op_class: str
    phase: Phase
    shapes: tuple[op_rules.Shape, ...]
    cost: op_rules.Cost


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

    __slots__ = ("allocates", "is_view", "mutated", "op", "silent")

    def __init__(self, func: Any) -> None:
        schema = func._schema
        self.op = schema.name.split("::")[1]
        self.is_view = bool(func.is_view)
        self.silent = not schema.name.startswith("aten::")
        self.allocates = op_rules.base_name(self.op) in op_tables.ALLOCATIONS
        self.mutated = [
            i
            for i, argument in enumerate(schema.arguments)
            if argument.alias_info and argument.alias_info.is_write
        ]


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows storages from the moment it is entered; records ops and events between `start` and `stop`."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.phase: Phase = "forward"
        self.scalars_answered = 0
        self._schemas: dict[Any, _Schema] = {}
        # Address -> (weak reference that reports the death, record). Creation order is kept by the dict.
        self._alive: dict[int, tuple[weakref.ref[Any], StorageRecord]] = {}
        self._index: dict[int, int] = {}
        self._recording: Recording | None = None

    def start(self) -> None:
        """Begin a recording; what is alive now becomes its initial storages, in order of birth."""
        recording = Recording(storages=[record for _, record in self._alive.values()])
        recording.initially_alive = len(recording.storages)
        self._index = {record.key: i for i, record in enumerate(recording.storages)}
        self._recording = recording
        self.enter("forward")

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
            self._recording.ops.append(OpRecord(op, op_class, self.phase, shapes, cost))

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
        if schema.op in ("_local_scalar_dense", "equal") and args[0].device.type == "meta":
            return self._answer(schema.op, args[0])
        try:
            result = func(*args, **kwargs) if kwargs else func(*args)
        except NotImplementedError as error:
            raise BadConfig(
                f"aten::{schema.op} has no shape without values ({_first_line(error)}): the step depends on "
                "its data there; choose a code path with fixed shapes"
            ) from error
        if schema.is_view or schema.silent:
            return result
        outputs = _tensors((result,))
        if schema.mutated:
            new = [tensor for tensor in outputs if self.track(tensor, schema.op)]
        else:
            fresh = [self.track(tensor, schema.op) for tensor in outputs]
            if not any(fresh):  # a view by another name, e.g. _unsafe_view
                return result
            new = outputs
        if self._recording is not None and not schema.allocates:
            self._record(schema, args, kwargs, new)
        return result

    def _answer(self, op: str, tensor: torch.Tensor) -> Any:
        self.scalars_answered += 1
        if op == "equal" or tensor.dtype is torch.bool:
            return True
        return 1.0 if tensor.dtype.is_floating_point else 1

    def _record(
        self,
        schema: _Schema,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        new: Sequence[torch.Tensor],
    ) -> None:
        inputs = _tensors(args)
        if kwargs:
            inputs += _tensors(kwargs.values())
        mutated = _tensors(args[i] for i in schema.mutated if i < len(args)) if schema.mutated else []
        if not inputs and not new:
            return  # on another device, e.g. the optimizer's step counters
        call = op_rules.Call(
            schema.op,
            [_operand(tensor) for tensor in inputs],
            [_operand(tensor) for tensor in new],
            [_operand(tensor) for tensor in mutated],
            args,
        )
        shapes = tuple(operand.shape for operand in call.inputs)
        op_class = op_rules.op_class(schema.op, call)
        assert self._recording is not None
        self._recording.ops.append(OpRecord(schema.op, op_class, self.phase, shapes, op_rules.cost(call)))


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
