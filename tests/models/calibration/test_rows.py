"""What published rows ran, read from their columns and notes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from planner.models.calibration.parameters import data_path
from planner.models.calibration.rows import Row, family_of, parse, read

LAMBDA = {
    "model": "bert-large",
    "framework": "pytorch (NVIDIA DeepLearningExamples)",
    "gpu": "RTX 4090",
    "n_gpus": "1",
    "interconnect": "",
    "precision": "fp16-amp",
    "batch_per_gpu": "28",
    "seq_or_image": "384",
    "throughput": "93.59",
    "unit": "samples/s",
    "optimizer": "FusedAdam",
    "source_repo": "lambdal/deeplearning-benchmark",
    "notes": "system=4090_v1; pytorch=1.13.0a0+d0d6b1f; driver=515.65.01",
}


def row(**changed: str) -> Row:
    raw: Mapping[str, str] = {**LAMBDA, **changed}
    return parse(0, raw)


def test_a_lambda_row_is_apex_o2_with_eager_attention_and_a_fused_optimizer() -> None:
    found = row()
    recipe = found.recipe
    assert recipe is not None
    assert (found.gpu, found.precision, found.year, found.host) == (
        "rtx-4090-24gb",
        "fp16-amp",
        2022.7,
        "4090_v1",
    )
    assert (recipe.policy, recipe.attention, recipe.optimizer, recipe.gradient_bytes) == (
        *("half", "math", "adam-fused"),
        2,
    )
    assert (recipe.batch, recipe.size, found.link) == (28.0, 384, "none")


def test_host_types_lose_their_gpu_count() -> None:
    eight = row(n_gpus="8", notes="system=8xA100_80GB_SXM4_v1; pytorch=1.13.0")
    assert eight.host == row(notes="system=A100_80GB_SXM4_v1").host == "A100_80GB_SXM4_v1"
    assert row(notes="system=LambdaCloud_4xV100_16GB_v1").host == "LambdaCloud_V100_16GB_v1"


@pytest.mark.parametrize(
    ("gpu", "interconnect", "link"),
    [
        ("RTX 3070", "PCIe (no NVLink)", "pcie4-no-p2p"),
        ("RTX A6000", "PCIe (NVLink bridge not stated)", "pcie4"),
        ("RTX 2080 Ti", "PCIe+NVLink bridge", "nvlink-bridge"),
        ("H100-PCIe-80GB", "PCIe (NVLink bridge not stated)", "pcie5"),
        ("H100-SXM5-80GB", "NVLink/NVSwitch", "nvswitch-h100"),
        ("V100-SXM2-16GB", "NVLink DGX-1", "nvlink-v100"),
        ("V100-SXM2-32GB", "NVLink/NVSwitch DGX-2", "nvswitch-v100"),
    ],
)
def test_interconnects_become_link_classes(gpu: str, interconnect: str, link: str) -> None:
    assert row(gpu=gpu, n_gpus="4", interconnect=interconnect).link == link


def test_nodes_are_counted() -> None:
    far = row(gpu="A100-SXM4-80GB", n_gpus="64", interconnect="NVLink/NVSwitch + network (8 nodes)")
    assert (far.node_count, far.network) == (8, "efa-fast")


def test_marked_rows_are_not_covered() -> None:
    assert row(notes="SUSPECT: this host …").reason == "marked SUSPECT by the table"
    assert not row(notes="COARSE: a README says …").covered


def test_foundry_rows_read_sharding_checkpointing_and_accumulation() -> None:
    found = row(
        model="mpt-7b",
        source_repo="mosaicml/llm-foundry",
        gpu="H100-SXM5-80GB",
        precision="bf16",
        n_gpus="8",
        interconnect="NVLink/NVSwitch",
        batch_per_gpu="16",
        seq_or_image="2048",
        unit="tokens/s",
        notes="grad_accum=3; sharding=FULL_SHARD; act_ckpt=True; act_offload=False",
    )
    assert found.recipe is not None
    assert (found.strategy, found.accumulation, found.recipe.checkpointing) == ("fsdp", 3, True)
    assert found.samples_per_unit == pytest.approx(1 / 2048)


def test_families_are_those_that_are_left_out_together() -> None:
    assert family_of("bert-large-mlperf") == "bert"
    assert family_of("wide-resnet50-2") == family_of("ssd300-resnet50") == family_of("resnext50-32x4d")
    assert family_of("shufflenet-v2-x1-0") == family_of("vgg16") == "other-cnn"
    assert family_of("mpt-7b") == family_of("gpt3-2.7b") == family_of("opt-1.3b") == "gpt-like"


def test_nearly_all_published_rows_are_covered() -> None:
    rows = read(data_path())
    assert len(rows) == 1118
    assert sum(r.covered for r in rows) == 1095
    assert sum(r.covered and r.gpu_count == 1 for r in rows) == 395
