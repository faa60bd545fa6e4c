"""`planner serve`: the API and the pages; tokens, backup and restore of what a service keeps."""

from __future__ import annotations

from typing import Annotated

import typer

from planner.cli.answering import answers
from planner.cli.commands import COMMANDS
from planner.cli.output import Answer

app = typer.Typer(
    help=COMMANDS["serve"].summary, invoke_without_command=True, add_completion=False, no_args_is_help=False
)
token = typer.Typer(
    help="Who may ask: make, list and revoke tokens.\n\nExample: planner serve token list",
    no_args_is_help=True,
)
app.add_typer(token, name="token")


@app.callback()
def serve(
    context: typer.Context,
    host: Annotated[
        str, typer.Option(help="Address to listen on; off loopback --tokens is needed.")
    ] = "127.0.0.1",
    port: Annotated[str, typer.Option(help="Port to listen on.")] = "8080",
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Every request needs a token; always so off loopback.")
    ] = False,
    allowed_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Host name to answer to; repeatable.")
    ] = None,
    workers: Annotated[str, typer.Option(help="Long jobs worked on at once.")] = "1",
    refresh_at: Annotated[
        str | None, typer.Option(metavar="HH:MM", help="Refresh prices daily at that time, UTC.")
    ] = None,
) -> None:
    """The same answers over HTTP and in a browser.

    Pages at /, the API at /v1, its description at /openapi.json, figures for
    Prometheus at /metrics. Ctrl-C ends it; what runs is finished or given back.

    Example: planner serve --port 8080 --refresh-at 04:17
    """
    if context.invoked_subcommand is not None:
        return
    from planner import config
    from planner.cli.serving import serve_until_told
    from planner.service.settings import ServiceSettings, is_loopback

    config.use_store()
    if not is_loopback(host) and not tokens:
        tokens = True
    if refresh_at is not None:
        from planner.service.refreshing import time_of_day

        time_of_day(refresh_at)
    settings = ServiceSettings(
        host=host,
        port=int(_number("port", port)),
        tokens=tokens,
        allowed_hosts=tuple(name.lower() for name in allowed_host or ()),
        workers=int(_number("workers", workers)),
        refresh_at=refresh_at,
    )
    serve_until_told(settings)


def _number(flag: str, written: str) -> float:
    """Raises UsageError for what is no number."""
    from planner.errors import UsageError
    from planner.request import number

    try:
        return float(number(written))
    except ValueError as error:
        raise UsageError(f"--{flag} {written}: {error}", flag) from error


@token.command("new")
@answers
def new(
    name: Annotated[str, typer.Argument(help="Whose it is; plans and jobs carry this name.")],
    role: Annotated[str, typer.Option(help="viewer, planner or admin.")] = "planner",
    days: Annotated[str, typer.Option(help="How long it holds.")] = "90",
) -> Answer:
    """Make a token. It is shown once; only its hash is kept.

    Example: planner serve token new finance --role viewer --days 30
    """
    from planner.cli.serving import opened

    with opened() as (state, tokens):
        id, made = tokens.new(name, role, _number("days", days))
        state.log("command line", "token made", token=id, name=name, role=role)
    row = {"id": id, "name": name, "role": role, "token": made}
    return Answer(
        document={"schema_version": "1.0", "kind": "token", **row},
        items=[row],
        rows=lambda: [row],
        table=lambda look: made,
        title="Token",
    )


@token.command("list")
@answers
def list_() -> Answer:
    """Every token, without the token itself.

    Example: planner serve token list
    """
    from planner.cli.serving import opened
    from planner.reports.lists import listing

    with opened() as (_, tokens):
        rows = tokens.all()
    headings = {"id": "ID", "name": "NAME", "role": "ROLE", "expires_at": "ENDS", "revoked_at": "REVOKED"}
    return Answer(
        document={"schema_version": "1.0", "kind": "tokens", "tokens": rows},
        items=rows,
        rows=lambda: rows,
        table=lambda look: listing(rows, headings, look),
        title="Tokens",
    )


@token.command("revoke")
@answers
def revoke(id: Annotated[str, typer.Argument(metavar="ID", help="As listed.")]) -> Answer:
    """End a token at once.

    Example: planner serve token revoke 0f3a9c2b7d51e684
    """
    from planner.cli.serving import opened
    from planner.errors import UsageError

    with opened() as (state, tokens):
        if not tokens.revoke(id):
            raise UsageError(f'no token "{id}" to revoke; see: planner serve token list', "id")
        state.log("command line", "token revoked", token=id)
    row: dict[str, str | bool] = {"id": id, "revoked": True}
    return Answer(
        document={"schema_version": "1.0", "kind": "token", **row},
        items=[row],
        rows=lambda: [row],
        table=lambda look: f"{id} is revoked",
        title="Token",
    )


@app.command()
@answers
def backup(file: Annotated[str, typer.Argument(metavar="FILE", help="Must not be there yet.")]) -> Answer:
    """Copy prices, plans, jobs and tokens into one file, while the service runs.

    Of a SQLite store; of PostgreSQL, pg_dump does it.

    Example: planner serve backup planner-2026-12-01.sqlite
    """
    from pathlib import Path

    from planner import config
    from planner.service.backup import back_up

    config.use_store()
    return _copied(back_up(Path(file)), "backup")


@app.command()
@answers
def restore(file: Annotated[str, typer.Argument(metavar="FILE", help="What backup wrote.")]) -> Answer:
    """Put a backup in the place of the store; the store is moved aside first.

    End the service before.

    Example: planner serve restore planner-2026-12-01.sqlite
    """
    from pathlib import Path

    from planner import config
    from planner.service.backup import put_back

    config.use_store()
    return _copied(put_back(Path(file)), "restore")


def _copied(row: dict[str, str], kind: str) -> Answer:
    return Answer(
        document={"schema_version": "1.0", "kind": kind, **row},
        items=[row],
        rows=lambda: [row],
        table=lambda look: "\n".join(f"{key.replace('_', ' ')}: {value}" for key, value in row.items()),
        title=kind.capitalize(),
    )
