"""Tasks to trace: transformers models from configurations, and modules small enough to count by hand."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from planner.models.tracing.step_trace import StepTrace, TraceVariant
from planner.models.tracing.task import TrainingTask
from planner.models.tracing.tracer import trace_task

pytest.importorskip("torch")
pytest.importorskip("transformers")


PLAIN = TraceVariant()


class Lab:
    """What the tests of this folder trace with; handed out by the fixture `lab`."""

    @staticmethod
    def transformers_task(
        model_class: str, config: Any, inputs: Callable[[int], Mapping[str, Any]]
    ) -> TrainingTask:
        """A task whose model computes its own loss, as the library's heads do."""
        import torch
        import transformers

        def build(variant: TraceVariant) -> Any:
            config._attn_implementation = (
                "sdpa" if variant.attention_kernel in ("flash", "efficient") else "eager"
            )
            config.use_cache = False
            with torch.device("meta"):
                return getattr(transformers, model_class)(config)

        return TrainingTask(model_class, build, inputs, lambda module, tensors: module(**tensors).loss)

    @staticmethod
    def bert_task(tokens: int, layers: int = 12) -> TrainingTask:
        """bert-base for sequence classification (two labels)."""
        import torch
        from transformers import BertConfig

        def inputs(batch: int) -> dict[str, torch.Tensor]:
            return {
                "input_ids": torch.empty(batch, tokens, dtype=torch.long, device="meta"),
                "labels": torch.empty(batch, dtype=torch.long, device="meta"),
            }

        return Lab.transformers_task(
            "BertForSequenceClassification", BertConfig(num_hidden_layers=layers), inputs
        )

    @staticmethod
    def causal_task(model_class: str, config: Any, tokens: int) -> TrainingTask:
        """Next-token prediction: labels are the inputs."""
        import torch

        def inputs(batch: int) -> dict[str, torch.Tensor]:
            ids = torch.empty(batch, tokens, dtype=torch.long, device="meta")
            return {"input_ids": ids, "labels": ids}

        return Lab.transformers_task(model_class, config, inputs)

    @staticmethod
    def module_task(module_class: Callable[[], Any], shape: tuple[int, ...]) -> TrainingTask:
        """A module fed with floats of `shape` per sample; the loss is the sum of its output."""
        import torch

        def build(variant: TraceVariant) -> Any:
            with torch.device("meta"):
                return module_class()

        def inputs(batch: int) -> dict[str, torch.Tensor]:
            return {"x": torch.empty(batch, *shape, device="meta")}

        return TrainingTask(
            "module", build, inputs, lambda module, tensors: module(tensors["x"]).float().sum()
        )

    @staticmethod
    def flops(trace: StepTrace, phase: str, batch: int = 1, *classes: str) -> float:
        """FLOPs of a phase, of some classes or of all."""
        rows = [row for row in trace.ops if row.phase == phase and (not classes or row.op_class in classes)]
        return sum(row.flops.at(batch) for row in rows)

    @staticmethod
    def allocated_peak(trace: StepTrace, batch: int, grain_bytes: int = 512) -> int:
        """Peak of live bytes, each storage rounded up to the grain, before any allocator. [B]"""

        def rounded(index: int) -> int:
            return -(-int(trace.storages[index].bytes.at(batch)) // grain_bytes) * grain_bytes

        live = sum(rounded(index) for index in range(trace.initially_alive))
        peak = live
        for event in trace.events:
            live += rounded(event - 1) if event > 0 else -rounded(-event - 1)
            peak = max(peak, live)
        return peak

    @staticmethod
    @functools.cache
    def bert(
        tokens: int, variant: TraceVariant = PLAIN, layers: int = 12, fused_dropout: bool = True
    ) -> StepTrace:
        """A trace of `bert_task`, made once per session."""
        return trace_task(Lab.bert_task(tokens, layers), variant, fused_dropout=fused_dropout)


@pytest.fixture(scope="session")
def lab() -> type[Lab]:
    return Lab
