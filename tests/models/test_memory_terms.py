"""Terms no trace sees: each has a source, and a card or version it depends on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.models import memory_terms
from planner.models.errors import BadData

MIB = 2**20


def test_the_context_of_the_hf_documentation_is_1343_mib_on_a_v100_with_cuda_11_2(
    make_card: Callable[..., Any],
) -> None:
    v100 = make_card(id="v100-sxm2-16gb", architecture="Volta")
    assert memory_terms.context(v100, cuda="11.2").p50_bytes == 1343 * MIB
    assert memory_terms.context(v100, cuda="12.4").p50_bytes < 600 * MIB


def test_hopper_keeps_a_larger_matrix_product_workspace(make_card: Callable[..., Any]) -> None:
    assert memory_terms.cublas_workspace(make_card(architecture="Ampere")).p50_bytes == 8_519_680
    assert memory_terms.cublas_workspace(make_card(architecture="Hopper")).p50_bytes == 32 * MIB


def test_the_capacity_is_what_torch_reports_and_else_a_labelled_share(make_card: Callable[..., Any]) -> None:
    known, text = memory_terms.capacity(make_card())
    assert known == int(23.65 * 2**30)
    assert "torch reports" in text
    guessed, text = memory_terms.capacity(make_card(torch_total_bytes=None, memory_total_bytes=None))
    assert 0.97 * 24 * 2**30 < guessed < 24 * 2**30
    assert "assumption" in text


def test_one_gpu_makes_no_communicator() -> None:
    assert memory_terms.communicator(1).p95_bytes == 0
    assert memory_terms.communicator(2).p50_bytes == 519 * MIB
    assert memory_terms.communicator(8).p50_bytes == 656 * MIB


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[band]\nsource = "nobody"\nchecked = 2026-12-01', "which \\[sources\\] does not hold"),
        ('[band]\nsource = "assumption"\nchecked = 2026-12-01', "without a note"),
        ('[band]\nsource = "assumption"\nnote = "why"', "no `checked` date"),
        ("[band", "not readable as TOML"),
    ],
)
def test_a_term_without_source_reason_or_date_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "memory_terms.toml"
    path.write_text(text)
    with pytest.raises(BadData, match=complaint):
        memory_terms.read_terms(path)


def test_a_figure_read_off_a_source_is_not_used_when_that_source_is_left_out(
    make_card: Callable[..., Any],
) -> None:
    v100 = make_card(id="v100-sxm2-16gb", architecture="Volta")
    own = memory_terms.card_terms(v100, cuda="11.2")
    honest = memory_terms.card_terms(v100, cuda="11.2", without="HF-docs-anatomy")
    assert own.context.p50_bytes == 1343 * MIB
    assert honest.context.p50_bytes != own.context.p50_bytes
    assert honest.band.reserved_p95 > own.band.reserved_p95
