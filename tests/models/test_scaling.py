"""Exchange between GPUs: volumes, links, overlap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.models import scaling
from planner.models.errors import UnknownName
from planner.models.hardware.catalogue import gpu

BERT_LARGE = 335_141_888


def exchange(gpus: int = 4, nodes: int = 1, **changed: object) -> scaling.Exchange:
    asked: dict[str, object] = {
        "strategy": "ddp",
        "gradient_bytes": 4.0 * BERT_LARGE,
        "parameters": BERT_LARGE,
        "gpu_count": gpus,
        "node_count": nodes,
        "link_name": "pcie4",
        "network_name": "none",
        "accumulation": 1,
        **changed,
    }
    return scaling.exchange(**asked)  # type: ignore[arg-type]


def test_c25_four_gpus_in_a_ring_of_10_gbytes_reduce_bert_large_in_a_fifth_of_a_second() -> None:
    """C25: 2 (4-1)/4 x 1,340,567,552 B / 10e9 = 0.201 s."""
    assert scaling.all_reduce_seconds(4 * BERT_LARGE, 4, 10e9) == pytest.approx(0.201, abs=0.0005)
    ring = exchange(fitted={"pcie4-no-p2p": 10e9 * 2**0.6}, link_name="pcie4-no-p2p")
    assert ring.seconds == pytest.approx(0.201, abs=0.0005)


def test_c25_nvlink_is_refused_on_rtx_40_series_cards() -> None:
    """C25: NVLink figures must never be a default for RTX 40-series cards."""
    for card in ("rtx-4090-24gb", "rtx-4080-16gb", "rtx-6000-ada-48gb"):
        with pytest.raises(scaling.LinkMismatch, match="has no NVLink"):
            scaling.check_link(gpu(card), "nvlink-bridge")
    scaling.check_link(gpu("a100-sxm4-40gb"), "nvswitch-a100")


def test_one_gpu_exchanges_nothing() -> None:
    alone = exchange(gpus=1, link_name="none")
    assert (alone.bytes, alone.seconds) == (0.0, 0.0)


def test_accumulation_does_not_repeat_the_all_reduce_but_does_repeat_sharded_gathers() -> None:
    assert exchange(accumulation=8).bytes == exchange(accumulation=1).bytes
    once = exchange(strategy="fsdp", accumulation=1).bytes
    assert once == pytest.approx(3 * 3 / 4 * BERT_LARGE * 2)
    assert exchange(strategy="fsdp", accumulation=8).bytes == 8 * once


def test_the_slower_of_link_and_network_decides() -> None:
    far = exchange(gpus=16, nodes=2, link_name="nvswitch-a100", network_name="ethernet")
    assert far.bottleneck == "ethernet"
    near = exchange(gpus=16, nodes=2, link_name="pcie3", network_name="efa-fast")
    assert near.bottleneck == "pcie3"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"link_name": "none"}, "need a link"),
        ({"gpus": 8, "nodes": 2, "network_name": "none"}, "need a network"),
        ({"gpus": 7, "nodes": 2, "network_name": "efa"}, "do not divide"),
    ],
)
def test_what_cannot_be_is_refused(changed: dict[str, object], says: str) -> None:
    with pytest.raises(scaling.LinkMismatch, match=says):
        exchange(**changed)  # type: ignore[arg-type]


def test_unknown_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match='Did you mean "pcie4"'):
        scaling.link("pcie_4")
    with pytest.raises(UnknownName, match='Did you mean "fsdp"'):
        exchange(strategy="fsdp2")


def test_every_link_class_of_the_house_has_a_figure_with_its_source() -> None:
    wanted = [
        *("nvswitch-b200", "nvswitch-h100", "nvswitch-a100", "nvswitch-v100", "nvlink-v100", "nvlink-bridge"),
        *("pcie5", "pcie4", "pcie4-a100", "pcie4-no-p2p", "pcie3"),
        *("efa-fast", "efa", "ethernet-fast", "ethernet"),
    ]
    assert sorted(scaling.links()) == sorted(wanted)
    for link in scaling.links().values():
        assert link.bandwidth_bytes_per_second > 1e9
        assert link.source
        assert link.source != "assumption" or link.note


@given(c=st.floats(0, 1e3), step=st.floats(1e-6, 1e3), hidden=st.floats(0, 2))
def test_exposed_communication_is_never_negative_and_never_more_than_all_of_it(
    c: float, step: float, hidden: float
) -> None:
    felt = scaling.exposed_seconds(c, step, hidden)
    assert 0 <= felt <= c * (1 + 1e-12)
    assert felt <= scaling.exposed_seconds(c, step / 2, hidden) * (1 + 1e-12)


def test_zero2_reduces_in_every_micro_step_and_zero1_once() -> None:
    assert exchange(strategy="zero1", accumulation=8).bytes == exchange(accumulation=8).bytes
    once, eight = (exchange(strategy="zero2", accumulation=n).bytes for n in (1, 8))
    assert once == exchange(strategy="ddp").bytes
    assert eight == pytest.approx(once * 9 / 2)
    assert scaling.shards_optimizer("zero2")
    assert not scaling.shards_optimizer("ddp")
