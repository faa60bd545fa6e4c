"""The classifiers of memory rows are the published ones: as many parameters as their library prints."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from planner.models.calibration.reference_networks import litgpt, vision  # noqa: E402


@pytest.mark.parametrize("name", sorted(vision.NETWORKS))
def test_a_classifier_has_the_published_number_of_parameters(name: str) -> None:
    with torch.device("meta"):
        network = vision.NETWORKS[name].build()
    count = sum(parameter.numel() for parameter in network.parameters())
    assert round(count / 1e6, 2) == vision.NETWORKS[name].parameters_millions


@pytest.mark.parametrize(
    ("model", "method", "trained"),
    [
        ("litgpt-phi-1.5", "lora", 1_572_864),
        ("litgpt-stablelm-alpha-3b", "lora", 2_097_152),
        ("litgpt-llama-2-7b", "lora", 4_194_304),
        ("litgpt-llama-2-13b", "lora", 6_553_600),
        ("litgpt-falcon-40b", "lora", 12_042_240),
        ("litgpt-stablelm-alpha-3b", "adapter", 573_888),
        ("litgpt-llama-2-7b", "adapter", 1_229_760),
        ("litgpt-stablelm-alpha-3b", "adapter_v2", 2_125_248),
        ("litgpt-llama-2-7b", "adapter_v2", 4_279_744),
    ],
)
def test_fine_tuning_trains_as_many_parameters_as_its_table_says(
    model: str, method: str, trained: int
) -> None:
    """Lightning-AI/litgpt, tutorials/resource-tables.md (4839345a)."""
    with torch.device("meta"):
        network = litgpt.build(model, method)
    assert sum(p.numel() for p in network.parameters() if p.requires_grad) == trained
