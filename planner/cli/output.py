"""Where an answer goes: one document, in the format asked for, to stdout or whole into a file."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.cli.complaints import unknown
from planner.errors import UsageError
from planner.reports import tabular
from planner.reports.look import PLAIN, Look, look_of

FORMATS = ("table", "json", "jsonl", "csv", "markdown", "html")
_SUFFIXES = {
    ".txt": "table", ".json": "json", ".jsonl": "jsonl", ".csv": "csv", ".md": "markdown", ".html": "html",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found out, before anyone decided how to show it.

    document: the whole answer as JSON values; its fields are the contract that scripts rely on.
    items: what jsonl writes, one a line.
    rows: what csv writes; numbers as numbers. Made only when asked for, like the table.
    table: the text for a reader, laid out for a look.
    brief: the rows of markdown and html, which people read; `rows` where None.
    notes: sentences that stand above the table of an html page and below that of markdown.
    exit_code: 0, or the code of a limit that the answer itself crossed (7: --fail-above).
    """

    document: Mapping[str, Any]
    items: Sequence[Mapping[str, Any]]
    rows: Callable[[], Sequence[tabular.Row]]
    table: Callable[[Look], str]
    title: str
    brief: Callable[[], Sequence[tabular.Row]] | None = None
    notes: Sequence[str] = field(default=())
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class Destination:
    """A format, and a file unless it is stdout."""

    format: str
    file: Path | None = None


def destination(format: str | None, output: str | None, yes: bool) -> Destination:
    """The destination that the flags ask for, refused before any work is done.

    Raises UsageError for an unknown format, a suffix that says none, a folder that is not there and a
    file that exists while --yes was not given. It never asks: a batch job has nobody to answer.
    """
    file = None if output in (None, "-") else Path(str(output))
    if format is None:
        format = "table" if file is None else _SUFFIXES.get(file.suffix.lower())
        if format is None:
            raise UsageError(f'cannot tell a format from the name "{file}"; add --format {"|".join(FORMATS)}')
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    if file is not None:
        try:
            _refuse(file, yes)
        except OSError as error:  # such as a name too long for any disk
            raise UsageError(f'"{file}" cannot be written: {error.strerror}') from error
    return Destination(format, file)


def _refuse(file: Path, yes: bool) -> None:
    """Raises UsageError where the file may not be written."""
    if file.is_dir():
        raise UsageError(f'"{file}" is a folder; -o takes a file')
    if not file.parent.is_dir():
        raise UsageError(f'there is no folder "{file.parent}" to write "{file.name}" into')
    if file.exists() and not file.is_file():
        raise UsageError(f'"{file}" is a device or a pipe; leave -o out and redirect the output instead')
    if file.exists() and not yes:
        raise UsageError(f'"{file}" exists already; add --yes to replace it')


def rendered(answer: Answer, format: str, look: Look) -> str:
    """The answer as text in one of FORMATS, ending in a newline."""
    if format == "json":
        return tabular.to_json(answer.document)
    if format == "jsonl":
        return tabular.to_jsonl(answer.items)
    if format == "csv":
        return tabular.to_csv(answer.rows())
    brief = (answer.brief or answer.rows)()
    if format == "markdown":
        notes = "".join(f"\n{note}\n" for note in answer.notes)
        return tabular.to_markdown(brief) + notes
    if format == "html":
        return tabular.to_html(brief, answer.title, answer.notes)
    return look.text(answer.table(look))


def emit(answer: Answer, to: Destination, color: str) -> None:
    """Write the answer, and nothing else, where it was asked for."""
    try:
        if to.file is None:
            if to.format != "table" and isinstance(sys.stdout, io.TextIOWrapper):
                sys.stdout.reconfigure(encoding="utf-8")  # what programs read is UTF-8, as in a file
            sys.stdout.write(rendered(answer, to.format, look_of(sys.stdout, color)))
            sys.stdout.flush()
            return
        write_whole(to.file, rendered(answer, to.format, PLAIN))
    except BrokenPipeError:
        raise
    except OSError as error:
        where = "the output" if to.file is None else f'"{to.file}"'
        raise UsageError(f"cannot write {where}: {error.strerror or error}") from error
    print(f"wrote {to.file}", file=sys.stderr)


def write_whole(file: Path, text: str) -> None:
    """Write the file entirely or not at all: an interrupt leaves what was there before.

    A link is followed, so that what it points to is replaced and not the link.
    """
    file = file.resolve()
    handle, partial = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=".partial")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as out:
            out.write(text)
        os.chmod(partial, 0o666 & ~_umask())
        os.replace(partial, file)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
