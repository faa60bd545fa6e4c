"""The packaged prices: clean, sourced, dated, and right where we know what is right."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from planner.pricing import snapshot
from planner.pricing.checks import verify
from planner.pricing.offer import Offer
from planner.pricing.store import PriceStore

_CLOUD = {"aws", "gcp", "azure", "lambda", "runpod", "vast", "oci"}


@pytest.fixture(scope="module")
def packaged() -> tuple[Offer, ...]:
    return snapshot.offers()


def _one(store: PriceStore, item: str, as_of: date | None = None, **filters: str) -> Offer:
    (found,) = store.latest(as_of, item=item, **filters)
    return found


def _amount(store: PriceStore, item: str, region: str, contract: str, as_of: date | None = None) -> str:
    return str(_one(store, item, as_of, region=region, contract=contract).amount)


def test_the_packaged_prices_break_no_invariant(packaged: tuple[Offer, ...]) -> None:
    assert [found.message for found in verify(packaged)] == []


def test_every_row_names_its_source_and_a_guess_says_why(packaged: tuple[Offer, ...]) -> None:
    for one in packaged:
        assert one.source_ref, one
        assert one.fetched_at is not None, one
        assert one.observed_at <= one.fetched_at, one
        if one.source == "assumption":
            assert one.quality == "estimated", one


def test_no_packaged_price_is_zero_and_none_is_of_a_capacity_block(packaged: tuple[Offer, ...]) -> None:
    """C02 and C05: the p5 capacity block stands at 0.00 in the price list; it is no offer."""
    assert all(one.amount is None or one.amount > 0 for one in packaged)
    assert not [one for one in packaged if one.contract == "capacity_block"]
    assert {one.provider for one in packaged if one.amount is None} == {"azure"}


def test_p4d_costs_21_957642_now_and_cost_32_7726_before_the_cut(loaded: PriceStore) -> None:
    where = {"region": "us-east-1", "contract": "on_demand"}
    assert str(_one(loaded, "p4d.24xlarge", **where).amount) == "21.957642"
    assert str(_one(loaded, "p4d.24xlarge", date(2025, 5, 31), **where).amount) == "32.7726"
    assert str(_one(loaded, "p4d.24xlarge", date(2025, 7, 1), **where).amount) == "21.957642"


@pytest.mark.parametrize(
    ("item", "before", "after"),
    [
        ("p4de.24xlarge", "40.96575", "27.44705"),
        ("p5.48xlarge", "98.32", "55.04"),
        ("p5en.48xlarge", "84.8", "63.296"),
    ],
)
def test_the_cut_of_june_2025_is_in_the_history(
    loaded: PriceStore, item: str, before: str, after: str
) -> None:
    assert _amount(loaded, item, "us-east-1", "on_demand", date(2025, 6, 4)) == before
    assert _amount(loaded, item, "us-east-1", "on_demand", date(2025, 6, 23)) == after


def test_claims_marked_wrong_are_not_in(packaged: tuple[Offer, ...]) -> None:
    p5 = {str(one.amount) for one in packaged if one.item == "p5.48xlarge" and one.contract == "on_demand"}
    assert p5 == {"98.32", "55.04"}


def test_c06_a2_highgpu_1g_is_the_sum_of_its_parts_and_equals_the_later_price(loaded: PriceStore) -> None:
    """C06: 2.933908 + 12 × 0.031611 + 85 × 0.004237 = 3.673385, equal to the figure of 2026-08."""
    composed = _one(loaded, "a2-highgpu-1g", date(2023, 12, 31), region="us-central1", contract="on_demand")
    total = sum((part.quantity * part.amount for part in composed.components), Decimal(0))
    assert total == composed.amount == Decimal("3.673385")
    assert _amount(loaded, "a2-highgpu-1g", "us-central1", "on_demand") == "3.673385"
    parts = {part.sku: part.amount for part in composed.components}
    stored = {one.sku: one.amount for one in loaded.latest(kind="cloud_component", region="us-central1")}
    assert parts == stored


def test_the_climb_of_a3_spot_in_2026_is_in_the_history(loaded: PriceStore) -> None:
    rows = loaded.history(item="a3-highgpu-8g", region="us-central1", contract="spot")
    amounts = [one.amount for one in rows if one.amount is not None]
    assert [round(amount, 6) for amount in (amounts[0], amounts[-1])] == [
        Decimal("34.393581"),
        Decimal("50.609541"),
    ]
    assert amounts == sorted(amounts)


def test_c07_per_gpu_prices_follow_from_the_instance(loaded: PriceStore) -> None:
    """C07."""
    p4d = _one(loaded, "p4d.24xlarge", region="us-east-1", contract="on_demand")
    assert p4d.amount_per_gpu == Decimal("2.74470525")


def test_spot_on_aws_is_derived_and_says_from_what(loaded: PriceStore) -> None:
    spot = _one(loaded, "p4d.24xlarge", region="us-east-1", contract="spot")
    assert spot.amount == Decimal("21.957642") * Decimal("0.33")
    assert spot.quality == "estimated"
    assert spot.reason is not None
    assert "21.957642 × (1 − 67 % saved)" in spot.reason
    assert spot.observed_at == datetime(2025, 6, 28, tzinfo=UTC)


def test_every_cloud_seller_and_a_price_on_spot_are_there(loaded: PriceStore) -> None:
    latest = loaded.latest(kind="cloud_instance")
    assert {one.provider for one in latest} == _CLOUD
    assert {one.provider for one in latest if one.contract == "spot"} >= {"aws", "gcp"}
    assert len(latest) > 500


def test_each_instance_has_one_gpu_shape_over_all_its_rows(packaged: tuple[Offer, ...]) -> None:
    shapes: dict[str, set[tuple[object, ...]]] = {}
    for one in packaged:
        if one.kind == "cloud_instance":
            shape = (one.gpu_model, one.gpu_count, one.gpu_mem_mib, one.gpu_form)
            shapes.setdefault(one.item, set()).add(shape)
    assert {item: found for item, found in shapes.items() if len(found) > 1} == {}
    assert shapes["p4d.24xlarge"] == {("a100-sxm4-40gb", 8, 40960, "sxm")}


@pytest.mark.parametrize(
    ("item", "condition", "amount"),
    [
        ("rtx-4090-24gb", "new", "3089.0"),
        ("rtx-4090-24gb", "used", "1460"),
        ("rtx-3090-24gb", "new", "1599.99"),
        ("rtx-3090-24gb", "used", "493"),
        ("psu-1600w", "new", "578.72"),
        ("psu-2000w", "new", "600"),
        ("cpu-threadripper-pro-7975wx", "new", "3900"),
        ("motherboard-wrx90d8", "new", "1200"),
        ("memory-ddr5-32gb-kit", "new", "374.97"),
        ("memory-ddr5-rdimm-64gb", "new", "2048"),
        ("nvme-4tb", "new", "315.05"),
        ("chassis-4u", "new", "400"),
        ("cooler-tr5", "new", "200"),
        ("host-epyc-7252-romed8-2t", "new", "1314"),
    ],
)
def test_cards_and_parts_of_the_rigs_have_their_known_price(
    loaded: PriceStore, item: str, condition: str, amount: str
) -> None:
    assert loaded.retail(item, condition).amount == Decimal(amount)


@pytest.mark.parametrize("item", ["cpu-desktop", "motherboard-desktop", "chassis-desktop", "cooler-desktop"])
def test_parts_of_a_class_say_what_was_counted_or_assumed(loaded: PriceStore, item: str) -> None:
    part = loaded.retail(item)
    assert (part.sample_n or 0) > 10 or part.quality == "estimated"
    assert part.note or part.reason


def test_a_published_range_keeps_its_ends_and_its_middle_is_an_estimate(packaged: tuple[Offer, ...]) -> None:
    ranged = [one for one in packaged if one.amount_low is not None and one.source != "assumption"]
    assert ranged
    for one in ranged:
        assert one.amount is not None
        assert one.amount_low is not None
        assert one.amount_high is not None
        assert one.amount * 2 == one.amount_low + one.amount_high
        assert one.quality == "estimated"


def test_a_date_that_is_only_a_period_is_its_first_day_and_says_so(packaged: tuple[Offer, ...]) -> None:
    starts = {r"\d{4}-\d\d": "%Y-%m-01", r"\d{4}-Q\d": "%Y-%m-01", r"\d{4}\b(?!-[Q\dH]).*": "%Y-01-01"}
    seen = 0
    for one in packaged:
        said = re.search(r'dated "(.*?)" by its source', one.note or "")
        if said is None:
            continue
        seen += 1
        assert one.observed_at.day == 1, one
        assert str(one.observed_at.year) == said[1][:4], one
        for pattern, form in starts.items():
            if re.fullmatch(pattern, said[1]):
                assert f"{one.observed_at:%Y-%m-%d}" == one.observed_at.strftime(form), one
    assert seen > 50


def test_electricity_of_the_united_states_is_there(loaded: PriceStore) -> None:
    assert loaded.electricity().amount == Decimal("0.146")
    assert loaded.electricity("us", as_of=date(2026, 3, 1)).amount == Decimal("0.1437")
    assert loaded.electricity("us-virginia").amount == Decimal("0.1301")
    assert loaded.electricity("europe").amount == Decimal("0.204")


def test_colocation_is_per_kilowatt_and_month(loaded: PriceStore) -> None:
    rows = loaded.latest(kind="colo", region="us", item="colo-250kw")
    assert [(str(one.amount), one.unit) for one in rows] == [("194.95", "kw_month")]


def test_files_are_in_the_order_in_which_they_are_read() -> None:
    assert all((snapshot.DATA / name).is_file() for name in (*snapshot.OFFER_FILES, "fx_rates.csv"))
