"""`planner calibrate`: torch microbenchmarks on this machine; two profiles compared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from planner.cli.answering import answers
from planner.cli.commands import COMMANDS
from planner.cli.complaints import unknown
from planner.cli.output import Answer

app = typer.Typer(help=COMMANDS["calibrate"].summary, add_completion=False)

DEVICES = ("cpu", "cuda")


@app.command()
@answers
def calibrate(
    seconds: Annotated[
        str, typer.Option(metavar="S", help="Wall time for measuring; one round is always finished.")
    ] = "90",
    device: Annotated[
        str | None, typer.Option(metavar="cpu|cuda", help="Else the card, where there is one.")
    ] = None,
    replay: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Time this model's own ops too, and price its step.")
    ] = None,
    batch: Annotated[str, typer.Option("--batch", metavar="N", help="Micro-batch of --replay.")] = "4",
    size: Annotated[
        str | None, typer.Option("--size", metavar="N", help="Tokens or pixels of --replay.")
    ] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="A B", help="Compare two profiles instead of measuring."),
    ] = None,
    anchors: Annotated[
        bool, typer.Option("--anchors/--no-anchors", help="Learn from a few real training steps as well.")
    ] = True,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Do not resume a calibration that was killed.")
    ] = False,
) -> Answer:
    """How fast this machine is: torch microbenchmarks, about 90 seconds.

    -o FILE.json keeps the profile. Ctrl-C keeps what was measured; a killed
    run is resumed. No setting of the device is changed.

    Example: planner calibrate --seconds 60 -o here.json
    """
    if compare is not None:
        return _compared(*compare)
    if device is not None and device not in DEVICES:
        raise unknown("device", device, DEVICES)
    from planner.models.calibration.device_profile import to_json
    from planner.models.microbenchmarks.replaying import calibrate_with
    from planner.reports.calibration_page import calibration_page, suite_rows

    profile = calibrate_with(
        seconds=_number("seconds", seconds, least=0.0),
        device=device,
        replay=replay,
        batch=int(_number("batch", batch, least=1.0)),
        size=None if size is None else int(_number("size", size, least=1.0)),
        fresh=fresh,
        anchors=anchors,
    )
    document = to_json(profile)
    return Answer(
        document=document,
        items=document["points"],
        rows=lambda: _point_rows(document),
        brief=lambda: suite_rows(document),
        table=lambda look: calibration_page(document, look),
        title=f"Calibration of {document['device']['name']}",
        notes=document["quality"]["warnings"],
    )


def _compared(first: str, second: str) -> Answer:
    from dataclasses import asdict

    from planner.models.calibration.device_compare import compare
    from planner.models.calibration.device_profile import read
    from planner.reports.calibration_page import comparison_page

    found = asdict(compare(read(Path(first)), read(Path(second))))
    document = {"schema_version": "1.0", "kind": "profile_comparison", "a": first, "b": second, **found}
    return Answer(
        document=document,
        items=document["suites"],
        rows=lambda: document["suites"],
        table=lambda look: comparison_page(document, look),
        title="Two profiles compared",
    )


def _point_rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The raw points, one a row."""
    return [
        {
            **{key: point[key] for key in ("key", "suite", "op", "op_class", "dtype", "layout", "flops")},
            "bytes": point["bytes_read"] + point["bytes_written"],
            "hot_seconds": point["hot"]["median"],
            "hot_spread": point["hot"]["spread"],
            "cold_seconds": point["cold"]["median"] if point["cold"] else None,
        }
        for point in document["points"]
    ]


def _number(name: str, text: str, least: float) -> float:
    from math import isfinite

    from planner.errors import UsageError

    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value) or value < least:
        raise UsageError(f'--{name} must be a number from {least:g} up, not "{text}"', name)
    return value
