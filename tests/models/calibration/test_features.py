"""Work of a row's step, from op lists traced once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.models.calibration.features import features_of, load
from planner.models.calibration.parameters import data_path
from planner.models.calibration.recipes import Adapter, Recipe
from planner.models.calibration.rows import read
from planner.models.tracing.step_trace import FLOP_CLASSES, OP_CLASSES


def recipe_of(model: str, recipe_id: str) -> Recipe:
    found = (
        r.recipe for r in read(data_path()) if r.recipe and r.model == model and r.recipe.id == recipe_id
    )
    return next(found)


def test_every_covered_row_has_its_op_list() -> None:
    table = load()
    assert {r.recipe.trace_key for r in read(data_path()) if r.recipe} <= set(table)


def test_bert_base_forward_and_backward_are_three_times_the_hand_count() -> None:
    """12 layers of 24 s h^2 and 4 s^2 h, heads aside; backward twice that."""
    recipe = replace(recipe_of("bert-base", "nvidia-bert-squad"), batch=1.0)
    work = features_of(recipe)
    tokens, width = 384, 768
    linear = 12 * 24 * tokens * width**2
    maps = 12 * 4 * tokens**2 * width
    assert work.flops[FLOP_CLASSES.index("gemm")] == pytest.approx(3 * linear, rel=1e-3)
    assert work.flops[FLOP_CLASSES.index("attention_unfused")] == pytest.approx(3 * maps, rel=1e-6)
    assert work.flops.sum() == pytest.approx(3 * (linear + maps), rel=1e-3)


def test_depth_is_extrapolated_to_the_published_parameter_count() -> None:
    """llm-foundry states 6,658,859,008 parameters for MPT-7B at 2,048 tokens."""
    assert load()["mpt-7b/lm/half/flash/all/2048"].parameters == 6_658_859_008


def test_micro_steps_repeat_and_the_update_does_not() -> None:
    one = replace(recipe_of("bert-large", "nvidia-bert-squad"), accumulation=1)
    four = features_of(replace(one, accumulation=4))
    once = features_of(one)
    update = OP_CLASSES.index("optimizer")
    np.testing.assert_allclose(four.flops, 4 * once.flops)
    # BertAdam's script keeps its gradients, so each micro-step adds to them: two reads and a write.
    added = 3 * 3 * one.gradient_bytes * once.trainable
    assert four.bytes[update] == once.bytes[update] + added
    assert once.bytes[update] > 0
    assert four.samples == 4 * once.samples


def test_adapters_drop_the_weight_gradients_and_most_of_the_update() -> None:
    lora = recipe_of("qwen-7b-lora", "qwen-lora")
    full = features_of(replace(lora, adapter=None))
    small = features_of(lora)
    gemm = FLOP_CLASSES.index("gemm")
    # With checkpointing 4 passes become 3.
    assert small.flops[gemm] / full.flops[gemm] == pytest.approx(0.75, abs=0.03)
    assert small.trainable < full.trainable / 30


def test_quantised_bases_are_unpacked_in_every_pass() -> None:
    plain = recipe_of("qwen-7b-lora", "qwen-lora")
    assert plain.adapter is not None
    packed = replace(plain, adapter=Adapter(64, "all", False, True))
    unpacking = OP_CLASSES.index("dequantisation")
    assert features_of(plain).bytes[unpacking] == 0
    assert features_of(packed).bytes[unpacking] > 2.5 * 5e9 * 3 * 8
