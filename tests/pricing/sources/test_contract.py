"""What holds for every registered source, whatever it is sent."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.pricing.errors import PricingError
from planner.pricing.sources import ParseResult, RawPage, SourceInfo, sources

NOW = datetime(2026, 9, 11, 12, tzinfo=UTC)
EACH = pytest.mark.parametrize("info", sources(), ids=lambda info: info.name)
# Names that one or other source looks for, so that made-up answers get past the first check.
_NAMES = st.sampled_from([
    "Items", "PriceList", "SpotPriceHistory", "searchResults", "CapacityBlockOfferings", "InstanceTypes",
    "skus", "items", "products", "terms", "product", "attributes", "pricingInfo", "retailPrice", "name",
])  # fmt: skip
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=12,
)


def parsed_or_refused(info: SourceInfo, body: bytes) -> ParseResult | None:
    """The result, or None when the source refused with an error of this package; any other error fails."""
    try:
        return info.make().parse([RawPage(body, ref="a test")], fetched_at=NOW)
    except PricingError:
        return None


@EACH
def test_nothing_fetched_is_nothing_offered(info: SourceInfo) -> None:
    assert info.make().parse([], fetched_at=NOW).offers == ()


@EACH
@pytest.mark.parametrize(
    "body",
    [b"", b"\x00", b"<html>busy</html>", b'{"Items": [', b"[" * 10**5, b'{"a": ' + b"9" * 5000, b"\xff"],
    ids=["empty", "nul", "html", "half", "deep", "long", "bytes"],
)
def test_what_is_no_answer_is_refused_in_words_or_gives_nothing(info: SourceInfo, body: bytes) -> None:
    result = parsed_or_refused(info, body)
    assert result is None or result.offers == ()


@EACH
@settings(max_examples=60, deadline=None)
@given(answer=st.dictionaries(_NAMES, _JSON, max_size=4))
def test_any_json_is_refused_in_words_or_gives_nothing(info: SourceInfo, answer: object) -> None:
    result = parsed_or_refused(info, json.dumps(answer).encode())
    assert result is None or result.offers == ()


@EACH
@settings(max_examples=60, deadline=None)
@given(body=st.binary(max_size=200))
def test_any_bytes_are_refused_in_words_or_give_nothing(info: SourceInfo, body: bytes) -> None:
    result = parsed_or_refused(info, body)
    assert result is None or result.offers == ()
