"""planner.pricing.sources: one door for every source."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from planner.pricing import sources as registry
from planner.pricing.sources import (
    BadAnswer,
    DuplicateSource,
    FetchContext,
    ParseResult,
    RawPage,
    SourceUnavailable,
    Tally,
    TooManyBadRows,
    UnknownSource,
    find,
    source,
    sources,
)


class _Nothing:
    """A source without prices."""

    def fetch(self, context: FetchContext) -> Iterator[RawPage]:
        return iter(())

    def parse(
        self, pages: Iterable[RawPage], *, fetched_at: datetime, observed_at: datetime | None = None
    ) -> ParseResult:
        return ParseResult(())


class _Other(_Nothing):
    """Another."""


@pytest.fixture(autouse=True)
def _registry_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    sources()
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))


def test_a_source_is_found_by_the_name_it_announced() -> None:
    source("acme", provider="acme", needs="a key")(_Nothing)
    found = find("acme")
    assert (found.provider, found.needs, found.default) == ("acme", "a key", True)
    assert isinstance(found.make(), _Nothing)
    assert found.summary == "A source without prices."


def test_a_second_source_of_the_same_name_is_refused_and_both_are_named() -> None:
    source("acme", provider="acme")(_Nothing)
    with pytest.raises(DuplicateSource, match=r"_Nothing and .*_Other"):
        source("acme", provider="acme")(_Other)
    assert isinstance(find("acme").make(), _Nothing)


def test_importing_a_module_twice_is_no_second_source() -> None:
    source("acme", provider="acme")(_Nothing)
    source("acme", provider="acme")(_Nothing)
    assert sum(info.name == "acme" for info in sources()) == 1


def test_a_misspelt_source_names_the_nearest() -> None:
    with pytest.raises(UnknownSource, match='Did you mean "aws-price-list"'):
        find("aws-pricelist")


def test_an_entry_point_of_another_package_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        name = "acme"

        def load(self) -> None:
            source("acme", provider="acme")(_Nothing)

    asked: list[str] = []

    def entry_points(*, group: str) -> list[Entry]:
        asked.append(group)
        return [Entry()]

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    monkeypatch.setattr(registry, "_loaded", [])
    assert "acme" in [info.name for info in sources()]
    assert asked == ["training_planner.price_sources"]


def test_a_joined_package_that_does_not_import_is_unavailable_and_the_others_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Entry:
        name = "broken"

        def load(self) -> None:
            raise ImportError("no module named acme_sdk")

    monkeypatch.setattr("importlib.metadata.entry_points", lambda *, group: [Entry()])
    monkeypatch.setattr(registry, "_loaded", [])
    assert "aws-price-list" in [info.name for info in sources()]
    with pytest.raises(SourceUnavailable, match="acme_sdk"):
        next(find("broken").make().fetch(FetchContext()))


def test_every_registered_source_says_what_it_is() -> None:
    for info in sources():
        assert info.summary.endswith("."), info.name
        assert info.provider


def test_looking_at_the_sources_imports_no_cloud_client() -> None:
    script = (
        "import sys; from planner.pricing.sources import sources; assert len(sources()) > 0; "
        "heavy = {'boto3', 'botocore', 'google', 'grpc', 'httpx2', 'tenacity'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_a_page_is_addressed_by_the_hash_of_its_bytes() -> None:
    page = RawPage(b"{}", ref="a test")
    assert page.sha256 == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


def test_a_page_that_would_not_fit_into_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.pricing.sources.page.LARGEST_PAGE_BYTES", 10)
    with pytest.raises(BadAnswer, match="11 bytes"):
        RawPage(b"01234567890", ref="a test")


def test_one_bad_row_in_twenty_is_counted_and_two_refuse_the_answer() -> None:
    tally = Tally("acme")
    tally.row(20)
    tally.spoilt("no price", "row 7")
    assert tally.result([]).bad == {"no price": 1}
    tally.spoilt("no price", "row 8")
    with pytest.raises(TooManyBadRows, match=r"2 of 20 rows .* row 7"):
        tally.result([])


def test_what_a_source_needs_is_in_the_error_that_skips_it() -> None:
    error = SourceUnavailable("AWS credentials")
    assert error.needs == "AWS credentials"
    assert "needs AWS credentials" in str(error)


def test_the_clock_of_a_fetch_is_in_utc() -> None:
    assert FetchContext().clock().tzinfo is UTC


EVERYWHERE = FetchContext(
    regions=("us-east-1", "us-central1", "eastus2"),
    instance_types=frozenset({"p4d.24xlarge", "a2-highgpu-1g", "Standard_ND96asr_v4", "vast.4x_rtx_4090"}),
)


@pytest.mark.parametrize(
    ("module", "region", "name"),
    [
        ("aws_shapes", "us-east-1", "p4d.24xlarge"),
        ("gcp_shapes", "us-central1", "a2-highgpu-1g"),
        ("azure_rows", "eastus2", "Standard_ND96asr_v4"),
    ],
)
def test_each_seller_is_asked_for_its_own_regions_and_types(module: str, region: str, name: str) -> None:
    forms = importlib.import_module(f"planner.pricing.sources.{module}")
    assert EVERYWHERE.regions_of(forms.REGION, ()) == (region,)
    assert EVERYWHERE.types_of(forms.TYPE, ()) == (name,)


@pytest.mark.parametrize(
    "changed", [{"regions": ("mars-1",)}, {"instance_types": frozenset({"vast.4x_rtx_4090"})}]
)
@pytest.mark.parametrize("name", ["aws-price-list", "aws-spot", "azure-retail", "gcp-catalog"])
def test_a_seller_of_whom_nothing_is_wanted_is_skipped_rather_than_empty(
    name: str, changed: dict[str, Any]
) -> None:
    with pytest.raises(SourceUnavailable, match="of this seller"):
        next(find(name).make().fetch(FetchContext(**changed)))
