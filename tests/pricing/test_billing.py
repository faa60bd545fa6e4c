"""planner.pricing.billing: hours as they are billed."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.pricing.billing import billed_hours, billed_seconds, billing_of

_PROVIDERS = ("aws", "gcp", "azure", "lambda", "runpod", "vast", "oci", "own", "somebody")
_hours = st.decimals(0, 10_000, places=7)


def test_c34_twenty_minutes_by_the_second_beat_a_whole_cheaper_hour() -> None:
    """C34: 21.96/h by the second is 7.32 for 20 minutes; 9.00/h in whole hours is 9.00."""
    twenty_minutes = Decimal(20) / 60
    by_second = Decimal("21.96") * billed_seconds("aws", twenty_minutes) / 3600
    by_hour = Decimal("9.00") * billed_hours("an hourly host", twenty_minutes)
    assert by_second == Decimal("7.32")
    assert by_hour == Decimal("9.00")
    rounded = (Decimal("21.96") * billed_hours("aws", twenty_minutes)).quantize(Decimal("0.01"))
    assert rounded == Decimal("7.32")


@pytest.mark.parametrize(
    ("provider", "seconds", "billed"),
    [
        ("aws", 1, 60),
        ("aws", 61, 61),
        ("gcp", 59, 60),
        ("lambda", 61, 120),
        ("runpod", 1, 1),
        ("oci", 60, 3600),
        ("oci", 3601, 3601),
        ("somebody", 1, 3600),
        ("somebody", 3601, 7200),
        ("aws", 0, 0),
    ],
)
def test_time_is_rounded_up_as_each_seller_does(provider: str, seconds: int, billed: int) -> None:
    assert billed_seconds(provider, Decimal(seconds) / 3600) == billed


@given(st.sampled_from(_PROVIDERS), _hours, _hours)
def test_billed_time_covers_use_and_never_falls_as_use_grows(
    provider: str, one: Decimal, more: Decimal
) -> None:
    less, longer = sorted((one, more))
    # A billed second may be short of the use by less than the microsecond that counts as rounding.
    assert billed_seconds(provider, less) + Decimal("1e-6") >= less * 3600
    assert billed_seconds(provider, less) <= billed_seconds(provider, longer)


@pytest.mark.parametrize("hours", ["-1", "NaN", "Infinity", "1e999999"])
def test_a_senseless_duration_is_refused(hours: str) -> None:
    with pytest.raises(ValueError, match="hours"):
        billed_hours("aws", Decimal(hours))


@pytest.mark.parametrize("provider", _PROVIDERS)
def test_every_rule_has_a_source_and_a_guess_says_why(provider: str) -> None:
    rule = billing_of(provider)
    assert rule.granularity_seconds > 0
    assert rule.minimum_seconds >= 0
    assert rule.source
    if rule.source == "assumption":
        assert rule.note
    else:
        assert rule.checked is not None
