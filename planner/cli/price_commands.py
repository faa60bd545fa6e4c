"""The commands of `planner prices` beside `list`."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from planner.cli.answering import answers
from planner.cli.output import Answer
from planner.cli.price_review import review

Item = Annotated[str | None, typer.Option(help="An instance, a GPU, a part of a rig.")]
Provider = Annotated[str | None, typer.Option(help="aws, gcp, azure, lambda and so on.")]
Region = Annotated[str | None, typer.Option(help="The seller's own code: us-east-1.")]
Contract = Annotated[str | None, typer.Option(help="on_demand, spot, purchase and so on.")]
Kind = Annotated[str | None, typer.Option(help="What kind of thing is sold.")]
AsOf = Annotated[str | None, typer.Option(metavar="DATE", help="As known then: 2025-05-31, or RFC 3339.")]

_DATA_BROKEN = 4


def register(app: typer.Typer) -> None:
    """Add the commands to the group."""
    for name, command in (
        ("show", show), ("history", history), ("refresh", refresh), ("verify", verify),
        ("review", review), ("import", import_), ("export", export), ("schedule", schedule),
    ):  # fmt: skip
        app.command(name)(command)


@answers
def refresh(
    source: Annotated[list[str], typer.Option(help="Only this source; may be repeated.")] = [],  # noqa: B006
    region: Annotated[list[str], typer.Option(help="A seller's region; may be repeated.")] = [],  # noqa: B006
    deadline: Annotated[str, typer.Option(metavar="SECONDS", help="For all sources together.")] = "120",
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, for timers.")] = False,
) -> Answer:
    """Ask the sources for prices, show what moved, store it.

    Exit 6: some sources failed or none could be asked, the stored prices were kept. Exit 5: no usable price
    is stored.

    Example: planner prices refresh --source aws-price-list --region eu-west-1
    """
    from planner import config
    from planner.errors import UsageError
    from planner.prices import refresh_prices
    from planner.pricing.locks import RefreshRunning
    from planner.reports.price_pages import asked_nobody, conclusion, refresh_page

    try:
        seconds = float(deadline)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:
        raise UsageError(
            f"--deadline {deadline}: seconds are meant, more than 0 and at most 3600", "deadline"
        )
    config.use_store()
    try:
        done = refresh_prices(
            source, regions=region, deadline_seconds=seconds, progress=_silent if quiet else _progress
        )
    except RefreshRunning as running:
        print(running, file=sys.stderr)
        return _nothing_done(str(running))
    for warning in done.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    document = done.to_json()
    if asked_nobody(document):
        print("warning: no source could be asked, so no price is newer than before", file=sys.stderr)
        print("each needs a package or credentials; which ones stands beside it", file=sys.stderr)
    sources = [{**each, "warnings": "; ".join(each["warnings"])} for each in document["sources"]]
    return Answer(
        document=document,
        items=document["moves"],
        rows=lambda: document["moves"] or sources,
        table=lambda look: refresh_page(document, look),
        brief=lambda: [{"source": each["source"], "said": each["said"]} for each in sources],
        title="Refresh of prices",
        notes=(conclusion(document),),
        exit_code=document["exit_code"],
    )


@answers
def verify(
    file: Annotated[str | None, typer.Argument(help="A price file; else the store.")] = None,
) -> Answer:
    """Whether the store, or FILE, holds what price data must hold. Exit 4 where it does not.

    Example: planner prices verify
    """
    from dataclasses import asdict

    from planner import config
    from planner.prices import verify_prices
    from planner.reports.price_pages import verify_page

    config.use_store()
    found = verify_prices(file)
    findings: list[dict[str, Any]] = [asdict(finding) for finding in found.findings]
    document = {
        "schema_version": "1.0",
        "kind": "findings",
        "where": found.where,
        "rows": found.rows,
        "errors": found.errors,
        "warnings": found.warnings,
        "findings": findings,
    }
    return Answer(
        document=document,
        items=findings,
        rows=lambda: findings,
        table=lambda look: verify_page(found.where, found.rows, found.errors, findings, look),
        title="Check of prices",
        exit_code=_DATA_BROKEN if found.errors else 0,
    )


@answers
def show(
    item: Annotated[str, typer.Argument(help="An instance, a GPU, a part of a rig.")], as_of: AsOf = None
) -> Answer:
    """Every offer of one item, per instance and per GPU, each with its source and age.

    Example: planner prices show a2-highgpu-1g
    """
    from planner import config
    from planner.cli.listings import listed
    from planner.prices import show_price

    config.use_store()
    columns = {
        "provider": "PROVIDER",
        "region": "REGION",
        "contract": "CONTRACT",
        "amount": "AMOUNT",
        "currency": "CUR",
        "unit": "PER",
        "amount_per_gpu": "PER GPU",
        "availability": "STOCK",
        "observed_at": "SEEN",
        "age_days": "AGE, DAYS",
        "source": "SOURCE",
        "quality": "QUALITY",
    }
    found = show_price(item, as_of)
    refs = sorted({f"{row['source']}: {row['source_ref']}" for row in found.rows if row["source_ref"]})
    drop = ("quality", "availability", "observed_at", "currency", "unit", "provider", "amount_per_gpu")
    return listed(found, columns, f"Prices of {item}", drop=drop, notes=refs)


@answers
def history(
    item: Item = None,
    provider: Provider = None,
    region: Region = None,
    contract: Contract = None,
    kind: Kind = None,
    as_of: AsOf = None,
    every: Annotated[bool, typer.Option("--all", help="Also where nothing changed.")] = False,
    plot: Annotated[bool, typer.Option("--plot", help="Draw it above the table.")] = False,
) -> Answer:
    """How prices moved, oldest first, and who said so.

    Example: planner prices history --item p4d.24xlarge --contract on_demand --plot
    """
    from dataclasses import replace

    from planner import config
    from planner.cli.listings import listed
    from planner.errors import UsageError
    from planner.prices import price_history, price_series
    from planner.reports.price_plot import plot as drawn

    config.use_store()
    filters = {"item": item, "provider": provider, "region": region, "contract": contract, "kind": kind}
    if not any(filters.values()):
        raise UsageError("a whole store is long: name an --item, --provider, --region, --contract or --kind")
    columns = {
        "observed_at": "SEEN",
        "item": "ITEM",
        "provider": "PROVIDER",
        "region": "REGION",
        "contract": "CONTRACT",
        "amount": "AMOUNT",
        "currency": "CUR",
        "unit": "PER",
        "change_percent": "CHANGE, %",
        "source": "SOURCE",
        "quality": "QUALITY",
    }
    drop = ("quality", "unit", "provider", "currency", "item")
    answer = listed(price_history(filters, as_of, every=every), columns, "History of prices", drop=drop)
    if not plot:
        return answer
    # The longest few: a chart of each price of a region would be read by nobody.
    every_series = price_series(filters, as_of)
    series = [each for each in every_series if len(each.steps) > 1][:3] or every_series[:1]
    table = answer.table
    return replace(
        answer, table=lambda look: "".join(drawn(each, look) + "\n" for each in series) + table(look)
    )


@answers
def import_(
    file: Annotated[str, typer.Argument(help="Our CSV, SkyPilot's, gpuhunt's, or Vantage's JSON.")],
    form: Annotated[str | None, typer.Option(help="Which of these; else its content tells.")] = None,
    observed_at: Annotated[
        str | None, typer.Option(metavar="DATE", help="When the prices held, if the file does not say.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and judge; store nothing.")] = False,
) -> Answer:
    """Add the prices of a file to the store. Exit 6 where some rows did not read; each is named.

    Example: planner prices import vms.csv --observed-at 2026-11-30
    """
    from planner import config
    from planner.prices import import_prices
    from planner.reports.price_pages import import_page

    config.use_store()
    done = import_prices(file, observed_at=observed_at, form=form, dry_run=dry_run)
    document = done.to_json()
    return Answer(
        document=document,
        items=document["moves"],
        rows=lambda: document["moves"],
        table=lambda look: import_page(document, look),
        title=f"Import of {file}",
        exit_code=done.exit_code,
    )


@answers
def export(
    item: Item = None,
    provider: Provider = None,
    region: Region = None,
    contract: Contract = None,
    kind: Kind = None,
    as_of: AsOf = None,
    history: Annotated[bool, typer.Option("--history", help="All observations.")] = False,
) -> Answer:
    """Stored offers with every field, as CSV unless asked otherwise: what `prices import` reads.

    Example: planner prices export --provider aws -o aws.csv
    """
    from planner import config
    from planner.prices import export_prices
    from planner.reports.tabular import to_csv

    config.use_store()
    filters = {"item": item, "provider": provider, "region": region, "contract": contract, "kind": kind}
    found = export_prices(filters, as_of, history=history)
    rows = [
        {**row, "components": None if row["components"] == "[]" else row["components"]} for row in found.rows
    ]
    return Answer(
        document=found.to_json(),
        items=found.rows,
        rows=lambda: rows,
        table=lambda look: to_csv(rows),
        title="Prices",
    )


def schedule(
    format: Annotated[str, typer.Option(metavar="cron|systemd|kubernetes", help="For which of these.")],
    at: Annotated[str, typer.Option(metavar="HH:MM", help="Time of day, UTC.")] = "04:17",
    program: Annotated[str, typer.Option(help="Path of the planner; of kubernetes, the image.")] = "planner",
    store: Annotated[str | None, typer.Option(metavar="URL", help="The store, if not the usual one.")] = None,
) -> None:
    """Print what to install for one refresh a day.

    Example: planner prices schedule --format systemd
    """
    from planner.pricing.schedules import unit_files

    print(unit_files(format, at=at, program=program_path(program, format), store=store), end="")


def program_path(program: str, format: str) -> str:
    """The planner's whole path: timers have a short PATH, and a virtual environment is not on it."""
    import os
    import shutil

    found = shutil.which("planner") if program == "planner" and format != "kubernetes" else None
    return os.path.abspath(found) if found else program


def _progress(line: str) -> None:
    if sys.stderr.isatty():
        print(line, file=sys.stderr)


def _silent(line: str) -> None:
    pass


def _nothing_done(why: str) -> Answer:
    document = {"schema_version": "1.0", "kind": "refresh", "running": True, "said": why}
    return Answer(
        document=document,
        items=[document],
        rows=lambda: [{"said": why}],
        table=lambda look: "",
        title="Refresh of prices",
    )
