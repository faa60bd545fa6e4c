"""Spellings: brands are dropped, words that make another product are not, and nothing is guessed."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.models.errors import UnknownName
from planner.models.hardware import catalogue, names
from planner.models.hardware.names import AmbiguousName, fold


@pytest.mark.parametrize(
    ("spelling", "gpu_id"),
    [
        ("RTX 4090", "rtx-4090-24gb"),
        ("4090", "rtx-4090-24gb"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090-24gb"),
        ("nvidia_geforce_rtx_4090_24GB", "rtx-4090-24gb"),
        ("A100-SXM4-40GB", "a100-sxm4-40gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
        ("Tesla T4", "t4-16gb"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2-16gb"),
        ("Quadro RTX 6000", "quadro-rtx-6000-24gb"),
        ("RTX 6000 Ada Generation", "rtx-6000-ada-48gb"),
        ("AMD Instinct MI300X", "mi300x-192gb"),
    ],
)
def test_common_spellings_name_their_card(spelling: str, gpu_id: str) -> None:
    assert catalogue.gpu(spelling).id == gpu_id


def test_a_spelling_that_fits_several_cards_names_them_and_none_is_chosen() -> None:
    with pytest.raises(AmbiguousName) as caught:
        catalogue.gpu("a100")
    assert str(caught.value) == (
        'GPU "a100" does not say which one is meant. Write one of: '
        "a100-sxm4-40gb, a100-sxm4-80gb, a100-pcie-40gb, a100-pcie-80gb"
    )
    assert isinstance(caught.value, UnknownName)
    assert [card.id for card in catalogue.candidates("a100")] == list(caught.value.nearest)


def test_where_only_memory_matters_an_open_form_is_no_obstacle() -> None:
    assert catalogue.gpu("A100-80GB", memory_only=True).memory_bytes == 80 * 2**30
    assert catalogue.gpu("H100-80GB", memory_only=True).memory_bytes == 80 * 2**30
    with pytest.raises(AmbiguousName):
        catalogue.gpu("A100-80GB")
    with pytest.raises(AmbiguousName):
        catalogue.gpu("A100", memory_only=True)  # 40 or 80 GB: memory is what is not said


@pytest.mark.parametrize(
    "label",
    [
        "RTX 4090 Laptop GPU",
        "RTX 4090D",
        "RTX 4090 48GB",
        "RTX 3080 Laptop GPU",
        "A100 (memory/form factor not stated)",
    ],
)
def test_another_product_is_not_taken_for_the_card_of_a_like_name(label: str) -> None:
    assert catalogue.candidates(label) == ()
    reason = catalogue.why_not(label)
    assert reason
    with pytest.raises(UnknownName, match="All names: planner hardware list") as caught:
        catalogue.hardware(label)
    assert reason in str(caught.value)


def test_a_known_card_has_no_reason_not_to_be_one() -> None:
    assert all(catalogue.why_not(card.name) is None for card in catalogue.gpus())


def test_the_examples_in_the_docstrings_run() -> None:
    for module in (catalogue, names):
        assert doctest.testmod(module).attempted
        assert not doctest.testmod(module).failed


@given(st.text(max_size=40))
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)
