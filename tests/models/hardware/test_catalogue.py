"""The catalogue as data: every figure owned up to, and the ones that plans have been wrong about before."""

from __future__ import annotations

import dataclasses
from datetime import date

import pytest

from planner.models.errors import UnknownFigure, UnknownName
from planner.models.hardware import catalogue, schema
from planner.models.hardware.records import Figure, Gpu, Instance, Rig
from planner.models.scaling import links

EVERYTHING = [*catalogue.gpus(), *catalogue.instances(), *catalogue.rigs()]

# Fp32 lanes of one streaming multiprocessor; GP100 and GA100 differ from their generations.
LANES_PER_SM = {
    "Pascal": 128,
    "Volta": 64,
    "Turing": 64,
    "Ampere": 128,
    "Ada": 128,
    "Hopper": 128,
    "Blackwell": 128,
}
LANES_PER_SM_OF_SILICON = {"GP100": 64, "GA100": 64}


def by_id(item: Gpu | Instance | Rig) -> str:
    return item.id


@pytest.mark.parametrize("item", EVERYTHING, ids=by_id)
def test_every_figure_has_unit_source_and_date(item: Gpu | Instance | Rig) -> None:
    assert item.figures
    for key, figure in item.figures.items():
        assert figure.unit, key
        assert catalogue.source(figure.source).title, key
        assert date(2020, 1, 1) < figure.checked <= date(2100, 1, 1), key
        assert (figure.value is None) == (figure.reason is not None), key
        if figure.source == schema.ASSUMPTION:
            assert figure.note, f"{key}: a guess says why"


@pytest.mark.parametrize("item", EVERYTHING, ids=by_id)
def test_every_id_and_alias_names_its_own_item(item: Gpu | Instance | Rig) -> None:
    for spelling in (item.id, item.id.upper(), *item.aliases):
        assert catalogue.hardware(spelling) is item


def test_the_catalogue_holds_what_was_promised() -> None:
    ids = {item.id for item in EVERYTHING}
    gpus = """t4-16gb v100-sxm2-16gb v100-sxm2-32gb v100-pcie-16gb v100-pcie-32gb v100s-pcie-32gb a10-24gb
        a10g-24gb a30-24gb a40-48gb a100-sxm4-40gb a100-sxm4-80gb a100-pcie-40gb a100-pcie-80gb l4-24gb
        l40s-48gb h100-sxm5-80gb h100-pcie-80gb h100-nvl-94gb h200-sxm-141gb b200-sxm-180gb gtx-1080-ti-11gb
        rtx-2080-ti-11gb rtx-3060-12gb rtx-3070-8gb rtx-3080-10gb rtx-3090-24gb rtx-3090-ti-24gb rtx-4080-16gb
        rtx-4090-24gb rtx-5090-32gb titan-rtx-24gb titan-v-12gb titan-xp-12gb quadro-rtx-5000-16gb
        quadro-rtx-6000-24gb quadro-rtx-8000-48gb rtx-a4000-16gb rtx-a4500-20gb rtx-a5000-24gb rtx-a5500-24gb
        rtx-a6000-48gb rtx-6000-ada-48gb rtx-pro-6000-blackwell-96gb mi100-32gb mi210-64gb mi250-128gb
        mi300x-192gb"""
    instances = """p3.2xlarge p3.8xlarge p3.16xlarge p3dn.24xlarge p4d.24xlarge p4de.24xlarge p5.4xlarge
        p5.48xlarge p5e.48xlarge p5en.48xlarge p6-b200.48xlarge g4dn.xlarge g4dn.12xlarge g5.xlarge
        g5.48xlarge g6.xlarge g6.48xlarge g6e.xlarge g6e.48xlarge a2-highgpu-1g a2-highgpu-8g a2-megagpu-16g
        a2-ultragpu-8g a3-highgpu-1g a3-highgpu-8g a3-megagpu-8g g2-standard-4 g2-standard-96 Standard_NC6s_v3
        Standard_NC24ads_A100_v4 Standard_NC40ads_H100_v5 Standard_NC4as_T4_v3 Standard_ND96asr_v4
        Standard_ND96amsr_A100_v4 Standard_ND96isr_H100_v5 lambda.gpu_1x_a10 lambda.gpu_8x_a100_80gb_sxm4
        runpod.1x_rtx_4090 runpod.8x_h100_sxm vast.1x_rtx_4090 vast.4x_rtx_4090"""
    rigs = """rig-1x-rtx-4090 rig-2x-rtx-4090 rig-4x-rtx-4090 rig-8x-rtx-4090 rig-2x-rtx-3090
        rig-4x-rtx-3090"""
    assert set(f"{gpus} {instances} {rigs}".split()) <= ids


# What plans have been wrong about before


def test_c22_capacity_of_a_24_gb_card_is_less_than_24_gib() -> None:
    """C22: nvidia-smi shows 24,564 MiB of an RTX 4090, torch reports 23.65 GiB."""
    card = catalogue.gpu("rtx-4090-24gb")
    assert card.memory_bytes == 24 * 2**30
    assert card.memory_total_bytes == 24_564 * 2**20
    assert card.torch_total_bytes == pytest.approx(23.65 * 2**30, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "tflops", "tolerance"),
    [
        ("a100-sxm4-40gb", 312, 0),
        ("a100-sxm4-80gb", 312, 0),
        ("a100-pcie-40gb", 312, 0),
        ("a100-pcie-80gb", 312, 0),
        ("h100-sxm5-80gb", 989, 1),
        ("h200-sxm-141gb", 989, 1),
        ("rtx-4090-24gb", 165.2, 0),
        ("rtx-3090-24gb", 71, 0),
        ("h100-pcie-80gb", 756, 1),
        ("l40s-48gb", 362, 1),
        ("l4-24gb", 121, 1),
    ],
)
def test_c23_bf16_peaks_are_dense_with_fp32_accumulate(name: str, tflops: float, tolerance: float) -> None:
    """C23: no sparsity, and half of the advertised rate on GeForce."""
    assert catalogue.gpu(name).rate("bf16-amp") / 1e12 == pytest.approx(tflops, abs=tolerance + 1e-9)


def test_c23_420_tflops_on_an_h200_are_42_percent() -> None:
    """C23: the model FLOPs utilisation of 420 TFLOP/s on an H200 in bf16."""
    assert 420e12 / catalogue.gpu("H200").rate("bf16") == pytest.approx(0.425, abs=0.001)


def test_c24_fp32_and_tf32_rank_a100_and_4090_in_opposite_order() -> None:
    """C24: 19.5 against 82.6 in fp32, 156 against 82.6 in TF32."""
    a100, card = catalogue.gpu("a100-sxm4-40gb"), catalogue.gpu("rtx-4090-24gb")
    assert (a100.rate("fp32"), card.rate("fp32")) == (19.5e12, 82.6e12)
    assert (a100.rate("tf32"), card.rate("tf32")) == (156e12, 82.6e12)
    assert card.rate("fp32") / a100.rate("fp32") == pytest.approx(4.2, abs=0.05)
    assert a100.rate("tf32") / card.rate("tf32") == pytest.approx(1.9, abs=0.05)


def test_c25_geforce_of_the_last_generations_has_no_peer_to_peer_and_no_nvlink_by_default() -> None:
    """C25: RTX 40 and 50 cards have neither; among RTX 30 cards the 3090s alone take a bridge."""
    recent = [
        card
        for card in catalogue.gpus()
        if card.product_class == "geforce"
        and card.compute_capability
        and float(card.compute_capability) >= 8.0
    ]
    assert len(recent) >= 8
    assert not any(card.peer_to_peer for card in recent)
    assert {card.id for card in recent if card.nvlink} == {"rtx-3090-24gb", "rtx-3090-ti-24gb"}


def test_c25_several_geforce_cards_are_linked_without_peer_to_peer() -> None:
    """C25: no NVLink figure for a GeForce machine, rented or owned, unless it says it has bridges."""
    for machine in (*catalogue.instances(), *catalogue.rigs()):
        card = catalogue.gpu(machine.gpu)
        if card.product_class == "geforce" and machine.gpu_count > 1:
            assert machine.link == "pcie4-no-p2p", machine.id


# Sanity: a slip of a factor of two, or of a column, shows in one of these


@pytest.mark.parametrize("card", catalogue.gpus(), ids=by_id)
def test_narrower_numbers_are_not_slower(card: Gpu) -> None:
    rates = [card.dense_flops[key] for key in ("fp32", "tf32", "fp16", "fp8")]
    known = [rate for rate in rates if rate is not None]
    assert known == sorted(known)
    bf16, fp16 = card.dense_flops["bf16"], card.dense_flops["fp16"]
    if bf16 is not None and card.id != "mi100-32gb":  # the MI100 does bf16 at half its fp16 rate
        assert bf16 == fp16


@pytest.mark.parametrize("card", [c for c in catalogue.gpus() if c.vendor == "nvidia"], ids=by_id)
def test_the_fp32_rate_is_lanes_times_clock(card: Gpu) -> None:
    lanes = LANES_PER_SM_OF_SILICON.get(card.silicon, LANES_PER_SM[card.architecture])
    assert card.rate("fp32") == pytest.approx(card.sm_count * lanes * 2 * card.boost_clock_hz, rel=0.03)


@pytest.mark.parametrize("card", [c for c in catalogue.gpus() if c.vendor == "nvidia"], ids=by_id)
def test_tensor_rates_are_the_whole_multiple_of_fp32_that_the_silicon_has(card: Gpu) -> None:
    """With fp32 accumulate: GeForce has half of what the same silicon has on a workstation board."""
    fp16 = card.dense_flops["fp16"]
    if fp16 is None:
        assert card.architecture == "Pascal"
        return
    if card.fp32_accumulate_halved:
        multiple = 4 if card.architecture == "Turing" else 2
    elif card.silicon == "GP100":
        multiple = 2
    elif card.silicon == "GA100":
        multiple = 16
    elif card.silicon == "GH100":
        multiple = 14.6  # tensor cores run at a lower clock than the fp32 lanes
    elif card.silicon == "GB100":
        multiple = 30
    else:
        multiple = 8 if card.architecture in ("Volta", "Turing") else 4
    assert fp16 / card.rate("fp32") == pytest.approx(multiple, rel=0.08)


def test_fp32_accumulate_is_halved_on_geforce_from_turing_on_and_on_the_a10g_alone() -> None:
    halved = {card.id for card in catalogue.gpus() if card.fp32_accumulate_halved}
    geforce = {
        card.id
        for card in catalogue.gpus()
        if card.product_class == "geforce"
        and card.architecture not in ("Pascal", "Volta")
        and not card.id.startswith("titan")
    }
    assert halved == geforce | {"a10g-24gb"}


@pytest.mark.parametrize("card", catalogue.gpus(), ids=by_id)
def test_memory_totals_are_a_little_below_the_nominal_size(card: Gpu) -> None:
    totals = [total for total in (card.memory_total_bytes, card.torch_total_bytes) if total is not None]
    for total in totals:
        assert (
            0.90 <= total / card.memory_bytes <= 1.001
        )  # the V100S and its like show exactly the nominal size
    if len(totals) == 2:
        assert totals[1] <= totals[0]


@pytest.mark.parametrize("card", catalogue.gpus(), ids=by_id)
def test_bytes_per_flop_are_those_of_a_gpu(card: Gpu) -> None:
    fastest = max(rate for key, rate in card.dense_flops.items() if rate is not None and key != "fp8")
    assert 100 < fastest / card.bandwidth_bytes_per_second * 2 < 1_200 or card.architecture == "Pascal"


def test_old_cards_have_no_fast_bf16_and_say_so() -> None:
    for name in ("t4-16gb", "v100-sxm2-32gb", "rtx-2080-ti-11gb", "titan-rtx-24gb", "gtx-1080-ti-11gb"):
        card = catalogue.gpu(name)
        assert "bf16" not in card.native_dtypes
        with pytest.raises(UnknownFigure, match=f"{name} has no bf16 rate: emulated"):
            card.rate("bf16-amp")


def test_half_precision_on_pascal_geforce_runs_on_the_fp32_units_and_says_so() -> None:
    with pytest.raises(UnknownFigure, match="computed on the fp32 units"):
        catalogue.gpu("gtx-1080-ti-11gb").rate("fp16-amp")


def test_an_unknown_precision_has_no_rate() -> None:
    with pytest.raises(UnknownFigure, match=r'no rate for precision "int4"\. Known: fp32'):
        catalogue.gpu("t4-16gb").rate("int4")


@pytest.mark.parametrize(
    ("name", "precision", "kernel"),
    [
        ("a100-sxm4-40gb", "bf16-amp", "flash"),
        ("rtx-4090-24gb", "fp16", "flash"),
        ("rtx-4090-24gb", "tf32", "efficient"),
        ("v100-sxm2-16gb", "fp16-amp", "efficient"),
        ("t4-16gb", "fp16", "efficient"),
        ("mi100-32gb", "fp16", "efficient"),
        ("mi300x-192gb", "bf16-amp", "flash"),
    ],
)
def test_flash_attention_needs_16_bits_and_ampere(name: str, precision: str, kernel: str) -> None:
    assert catalogue.gpu(name).attention_kernel(precision) == kernel


# Instances and rigs


def test_p4d_has_eight_a100_of_40_gb_on_nvswitch_and_efa() -> None:
    p4d = catalogue.instance("p4d.24xlarge")
    assert (p4d.gpu, p4d.gpu_count, p4d.vcpus, p4d.ram_gib) == ("a100-sxm4-40gb", 8, 96, 1152)
    assert (p4d.link, p4d.network, p4d.network_gbps) == ("nvswitch-a100", "efa", 400)
    assert p4d.local_ssd_gib == pytest.approx(8e12 / 2**30)  # eight disks of 1000 GB, not GiB


@pytest.mark.parametrize("item", catalogue.instances(), ids=by_id)
def test_instances_are_linked_as_their_gpus_can_be(item: Instance) -> None:
    card = catalogue.gpu(item.gpu)
    assert (item.link == "none") == (item.gpu_count == 1)
    if item.link.startswith("nvswitch"):
        assert card.form_factor == "sxm"
        generation = {"nvswitch-a100": "Ampere", "nvswitch-h100": "Hopper", "nvswitch-b200": "Blackwell"}
        assert card.architecture == generation[item.link]
    if item.link.startswith("nvlink"):
        assert card.nvlink


@pytest.mark.parametrize("item", catalogue.rigs(), ids=by_id)
def test_a_rig_draws_what_its_cards_and_host_do_and_its_supplies_carry_it(item: Rig) -> None:
    card = catalogue.gpu(item.gpu)
    limit = item.power_limit_watts or card.tdp_watts
    assert 0.9 * limit * item.gpu_count < item.load_watts < 1.35 * limit * item.gpu_count + 200
    assert 20 * item.gpu_count < item.idle_watts < 60 * item.gpu_count + 150
    assert {part.item: part.quantity for part in item.parts}[item.gpu] == item.gpu_count
    assert all(catalogue.part_title(part.item) for part in item.parts)


def test_eight_4090_draw_about_four_kilowatts() -> None:
    rig = catalogue.rig("rig-8x-rtx-4090")
    assert rig.load_watts == pytest.approx(4000, rel=0.05)
    assert rig.figures["load_watts"].source == schema.ASSUMPTION


# Asking for what is not there


def test_an_unknown_gpu_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(UnknownName) as caught:
        catalogue.gpu("rtx-4900")
    assert str(caught.value) == (
        'no GPU "rtx-4900". Did you mean "rtx-4090-24gb"? All names: planner hardware list'
    )


def test_an_unknown_instance_and_rig_name_their_nearest() -> None:
    with pytest.raises(UnknownName, match=r'no instance "p4d\.12xlarge"\. Did you mean "p4d\.24xlarge"'):
        catalogue.instance("p4d.12xlarge")
    with pytest.raises(UnknownName, match=r'no rig "rig-3x-rtx-4090"\. Did you mean "rig-[1248]x-rtx-4090"'):
        catalogue.rig("rig-3x-rtx-4090")
    with pytest.raises(UnknownName, match=r'no hardware "p4d\.12xlarge"'):
        catalogue.hardware("p4d.12xlarge")


def test_an_unknown_source_and_part_are_errors_too() -> None:
    with pytest.raises(UnknownName, match='no source "nvidia-a1000"'):
        catalogue.source("nvidia-a1000")
    with pytest.raises(UnknownName, match=r'no rig part "psu-160w"\. Did you mean "psu-1600w"'):
        catalogue.part_title("psu-160w")


def test_records_can_be_keys_and_a_changed_copy_is_another_card() -> None:
    card = catalogue.gpu("t4-16gb")
    faster = dataclasses.replace(card, dense_flops={**card.dense_flops, "fp16": 130e12})
    assert len({card: 1, faster: 2}) == 2
    assert len(set(catalogue.instances())) == len(catalogue.instances())
    assert len(set(catalogue.rigs())) == len(catalogue.rigs())


def test_records_cannot_be_changed() -> None:
    card = catalogue.gpu("t4-16gb")
    with pytest.raises(AttributeError):
        card.tdp_watts = 1.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        card.figures["tdp_watts"] = Figure(1, "W", "assumption", date(2026, 1, 1))  # type: ignore[index]


def test_every_link_and_network_a_machine_names_has_a_bandwidth() -> None:
    machines = [*catalogue.instances(), *catalogue.rigs()]
    named = {machine.link for machine in machines} | {machine.network for machine in machines}
    assert named - {"none"} <= set(links())
    assert {*schema.LINKS, *schema.NETWORKS} - {"none"} <= set(links())
