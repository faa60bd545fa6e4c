"""`planner prices` beside `list`: each command by its text, its numbers and its exit code."""

from __future__ import annotations

import csv
import io
import json
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.pricing import sources as registry
from planner.pricing.csv_files import write_offers
from planner.pricing.offer import Offer
from planner.pricing.sources.errors import SourceUnavailable
from planner.pricing.store import PriceStore

Planner = Callable[..., Any]
HISTORY = ("prices", "history", "--item", "p4d.24xlarge", "--region", "us-east-1", "--contract", "on_demand")


def test_history_shows_the_cut_of_june_2025_and_who_said_so(planner: Planner) -> None:
    said = planner(*HISTORY)
    assert said.code == 0
    (line,) = [line for line in said.out.splitlines() if "-33.0" in line]
    assert {"2025-06-23T13:18:30Z", "21.957642", "karpenter-provider-aws"} <= set(line.split())


def test_history_gives_the_same_amounts_in_every_format(planner: Planner) -> None:
    document = json.loads(planner(*HISTORY, "--format", "json").out)
    amounts = [Decimal(row["amount"]) for row in document["history"]]
    assert Decimal("32.7726") in amounts
    assert Decimal("21.957642") in amounts
    lines = planner(*HISTORY, "--format", "jsonl").out.splitlines()
    assert [Decimal(json.loads(line)["amount"]) for line in lines] == amounts
    rows = list(csv.DictReader(io.StringIO(planner(*HISTORY, "--format", "csv").out)))
    assert [Decimal(row["amount"]) for row in rows] == amounts
    for format in ("markdown", "html", "table"):
        text = planner(*HISTORY, "--format", format).out
        assert all(str(amount) in text for amount in amounts)


def test_history_draws_steps_in_blocks_and_falls_back_to_ascii(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    drawn = planner(*HISTORY, "--plot").out
    assert "█" in drawn
    assert "32.77" in drawn
    assert max(map(len, drawn.split("\n\n")[0].splitlines())) <= 80
    monkeypatch.setenv("LC_ALL", "C")
    assert planner(*HISTORY, "--plot").out.isascii()


def test_history_of_everything_is_refused_with_what_to_name(planner: Planner) -> None:
    said = planner("prices", "history")
    assert said.code == 2
    assert "--item" in said.err


def test_an_unknown_item_names_the_nearest(planner: Planner) -> None:
    for command in (("history", "--item"), ("show",)):
        said = planner("prices", *command, "p4d.24xlrge")
        assert said.code == 2
        assert 'Did you mean "p4d.24xlarge"?' in said.err


def test_show_puts_the_price_of_one_gpu_beside_that_of_the_instance(planner: Planner) -> None:
    document = json.loads(planner("prices", "show", "p4d.24xlarge", "--format", "json").out)
    (row,) = [
        row
        for row in document["offers"]
        if row["region"] == "us-east-1" and row["contract"] == "on_demand" and row["provider"] == "aws"
    ]
    assert (row["amount"], row["amount_per_gpu"]) == ("21.957642", "2.74470525")
    assert row["source"]
    assert row["age_days"] >= 0


def test_verify_is_content_with_what_ships_and_not_with_a_broken_file(
    planner: Planner, tmp_path: Path
) -> None:
    said = planner("prices", "verify")
    assert (said.code, "0 errors" in said.out) == (0, True)
    path = tmp_path / "offers.csv"
    (good,) = [offer for offer in _stored("p5.48xlarge") if offer.region == "us-east-1"][:1]
    write_offers(path, [good])
    assert planner("prices", "verify", str(path)).code == 0
    text = path.read_text().replace("instance_hour", "kwh")
    path.write_text(text)
    said = planner("prices", "verify", str(path))
    assert said.code == 4
    assert "cloud_instance is not priced by kwh" in said.out


def _stored(item: str) -> tuple[Offer, ...]:
    with PriceStore.open() as store:
        return store.latest(item=item, contract="on_demand")


def test_what_is_exported_is_imported_again_without_a_change(
    planner: Planner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "aws.csv"
    assert planner("prices", "export", "--provider", "aws", "--history", "-o", str(path)).code == 0
    said = planner("prices", "import", str(path), "--format", "json")
    document = json.loads(said.out)
    assert (said.code, document["form"], document["rows_added"], document["bad"]) == (0, "planner-csv", 0, [])
    monkeypatch.setenv("PLANNER_STORE_URL", f"sqlite:///{tmp_path}/other.sqlite")
    document = json.loads(planner("prices", "import", str(path), "--format", "json").out)
    assert document["offers"] > 100


def test_import_takes_the_good_rows_and_names_the_bad_ones(planner: Planner, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        "kind,provider,item,region,contract,unit,condition,amount,currency,observed_at,source\n"
        "gpu_retail,shop,rtx-4090-24gb,us,purchase,each,used,1450,USD,2026-11-20,my list\n"
        "gpu_retail,shop,rtx-3090-24gb,us,purchase,each,used,call us,USD,2026-11-20,my list\n"
    )
    said = planner("prices", "import", str(path))
    assert said.code == 6
    assert 'row 3: amount "call us" is not a number' in said.out
    with PriceStore.open() as store:
        (mine,) = store.latest(provider="shop")
    assert (mine.item, mine.amount) == ("rtx-4090-24gb", Decimal(1450))


def test_a_dry_run_stores_nothing(planner: Planner, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        "kind,provider,item,region,contract,unit,condition,amount,currency,observed_at,source\n"
        "gpu_retail,shop,rtx-4090-24gb,us,purchase,each,used,1450,USD,2026-11-20,my list\n"
    )
    document = json.loads(planner("prices", "import", str(path), "--dry-run", "--format", "json").out)
    assert (document["offers"], document["rows_added"]) == (1, 0)
    with PriceStore.open() as store:
        assert store.latest(provider="shop") == ()


def test_schedule_prints_a_unit_file(planner: Planner) -> None:
    said = planner("prices", "schedule", "--format", "cron", "--at", "05:30")
    assert said.code == 0
    assert "30 5 * * * " in said.out
    assert planner("prices", "schedule", "--format", "windows").code == 2


# --- refresh


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No name resolves, and waits between tries take no time."""

    def refuse(*_: object, **__: object) -> Any:
        raise socket.gaierror("no network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setattr("planner.pricing.sources.http._FIRST_WAIT_SECONDS", 0.0)


def test_review_lists_what_is_set_aside_and_keeps_who_accepted_it(planner: Planner) -> None:
    with PriceStore.open() as store:
        (p5,) = store.latest(item="p5.48xlarge", provider="aws", region="us-east-1", contract="on_demand")
        now = datetime.now(UTC)
        held = replace(
            p5, amount=Decimal("5.504"), observed_at=now, fetched_at=now, quality="suspect", reason="a tenth"
        )
        store.append([held])
    (row,) = json.loads(planner("prices", "review", "--format", "json").out)["held"]
    assert (row["amount"], row["amount_in_use"], row["change_percent"]) == ("5.504", "55.04", -90.0)
    assert row["id"] in planner("prices", "review").out
    for flags, wanted in (
        ((), "--accept or --reject"), (("--accept",), "say why"), (("--accept", "--reject"), "one of them"),
    ):  # fmt: skip
        said = planner("prices", "review", row["id"], *flags)
        assert (said.code, wanted in said.err) == (2, True), said.err
    assert planner("prices", "review", "--accept").code == 2
    said = planner("prices", "review", row["id"], "--accept", "--reason", "on the bill", "--by", "Ann")
    assert (said.code, "accepted by Ann" in said.out) == (0, True)
    (logged,) = json.loads(planner("prices", "review", "--log", "--format", "json").out)["decisions"]
    assert (logged["verdict"], logged["decided_by"], logged["decision_reason"]) == (
        "accepted", "Ann", "on the bill",
    )  # fmt: skip
    shown = json.loads(planner("prices", "show", "p5.48xlarge", "--format", "json").out)
    assert "5.504" in [each["amount"] for each in shown["offers"]]
    assert json.loads(planner("prices", "review", "--format", "json").out)["held"] == []


def test_refresh_where_no_source_can_be_asked_warns_and_exits_6(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(self: object, context: object) -> Any:
        raise SourceUnavailable("boto3")

    (info,) = [info for info in registry.sources() if info.name == "aws-price-list"]
    monkeypatch.setattr(info.make, "fetch", missing)
    said = planner("prices", "refresh", "--source", "aws-price-list")
    assert said.code == 6
    assert "warning: no source could be asked" in said.err
    assert "skipped: needs boto3" in said.out
    assert all(len(line) <= 80 for line in said.err.splitlines())


@pytest.mark.usefixtures("offline")
def test_refresh_without_network_and_credentials_says_so_per_source_and_keeps_the_prices(
    planner: Planner,
) -> None:
    said = planner("prices", "refresh", "--format", "json")
    document = json.loads(said.out)
    asked = {each["source"]: each for each in document["sources"]}
    assert set(asked) == {info.name for info in registry.sources() if info.default}
    assert all(each["status"] in ("failed", "unavailable") for each in asked.values())
    assert said.code == document["exit_code"]
    assert said.code in (0, 6)
    assert "AWS credentials" in asked["aws-price-list"]["said"]
    assert "Traceback" not in said.err
    assert planner("prices", "verify").code == 0
    assert planner("prices", "list", "--item", "p4d.24xlarge").code == 0


def test_refresh_of_an_unknown_source_names_the_nearest(planner: Planner) -> None:
    said = planner("prices", "refresh", "--source", "aws-pricelist")
    assert said.code == 2
    assert 'Did you mean "aws-price-list"?' in said.err


@pytest.mark.parametrize("deadline", ["0", "-1", "soon", "nan", "1e9"])
def test_a_deadline_that_is_none_is_refused(planner: Planner, deadline: str) -> None:
    said = planner("prices", "refresh", "--deadline", deadline)
    assert said.code == 2
    assert "--deadline" in said.err


def test_a_second_refresh_at_the_same_time_ends_cleanly_and_says_so(planner: Planner) -> None:
    with PriceStore.open() as store, store.only_refresher():
        said = planner("prices", "refresh")
    assert said.code == 0
    assert "is being refreshed already" in said.err


def test_a_refresh_shows_what_moved(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.pricing.sources import FetchContext, ParseResult, RawPage, SourceInfo

    with PriceStore.open() as store:
        (p5,) = store.latest(item="p5.48xlarge", region="us-east-1", contract="on_demand")

    class Made:
        """Says that a p5 costs ten per cent more."""

        def fetch(self, context: FetchContext) -> Any:
            yield RawPage(b"a tenth more", ref="made")

        def parse(self, pages: Any, *, fetched_at: datetime, observed_at: datetime | None = None) -> Any:
            from dataclasses import replace

            assert p5.amount is not None
            dearer = replace(
                p5, amount=p5.amount * Decimal("1.1"), observed_at=datetime.now(UTC), source="made"
            )
            return ParseResult((dearer,), rows=1)

    made = SourceInfo("made", "aws", "", False, Made)
    monkeypatch.setattr(registry, "_registry", {**registry._registry, "made": made})
    said = planner("prices", "refresh", "--source", "made")
    assert said.code == 0
    assert "1 offer, 0 new, 1 changed" in said.out
    (line,) = [line for line in said.out.splitlines() if line.startswith("changed")]
    assert {"p5.48xlarge", "55.04", "60.544", "10.0"} <= set(line.split())
