"""Speed and size of the price store: offer files, a million offers, ten million rows of history.

    python tools/bench_prices.py                     smaller by default: minutes, 3 GB of disk
    python tools/bench_prices.py --full              1 GB offer files, ten million rows (15 GB of disk)
    python tools/bench_prices.py --only history --postgres host=127.0.0.1

Each part runs in a process of its own. CPU seconds are user plus system time of that process; queries are
timed by the clock, the least of several runs, since a database server works elsewhere. With --postgres a
database is made on that server and dropped at the end. Exit 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import price_makers

SPEED_OF_BARE_SCAN = 0.6
PEAK_MIB = 150.0
INGEST_SECONDS_A_MILLION = 60.0
LATEST_MS, AS_OF_MS = 50.0, 100.0
TRIES = 7


def main() -> int:
    asked = _arguments()
    if asked.part:
        print(json.dumps(_PARTS[asked.part](*asked.values)))
        return 0
    missed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="bench-prices-", dir=asked.folder) as folder:
        for name in ("files", "ingest", "history"):
            if asked.only in ("", name):
                for line, met in _SECTIONS[name](Path(folder), asked):
                    print(line + ("" if met is None else "  met" if met else "  MISSED"), flush=True)
                    missed += [] if met is not False else [line]
    return 1 if missed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--full", action="store_true", help="1 GB files and ten million rows")
    parser.add_argument("--only", choices=("files", "ingest", "history"), default="")
    parser.add_argument("--postgres", metavar="CONNINFO", help="a server on which a database may be made")
    parser.add_argument("--folder", help="where to write (default: the usual temporary folder)")
    parser.add_argument("--part", choices=_PARTS, help=argparse.SUPPRESS)
    parser.add_argument("values", nargs="*", help=argparse.SUPPRESS)
    return parser.parse_args()


Lines = Iterator[tuple[str, bool | None]]


# --- offer files


def _files(folder: Path, asked: argparse.Namespace) -> Lines:
    """An offer file read, against a bare scan of the same bytes."""
    small, large = 128 * 10**6, 10**9
    for suffix in ("csv", "json"):
        path = folder / f"offers.{suffix}"
        price_makers.offer_file(path, small)
        ours, bare = _child("read-file", path), _child("scan-bare", path)
        share = bare["cpu_seconds"] / ours["cpu_seconds"]
        yield (
            f"offer file, {suffix}, {path.stat().st_size / 1e6:.0f} MB: {ours['cpu_seconds']:.2f} CPU s, "
            f"a bare scan {bare['cpu_seconds']:.2f} s: {share:.0%} of its speed "
            f"(at least {SPEED_OF_BARE_SCAN:.0%})",
            share >= SPEED_OF_BARE_SCAN,
        )
        if asked.full:
            price_makers.offer_file(path, large)
            ours = _child("read-file", path)
        size = path.stat().st_size / 1e6
        yield (
            f"offer file, {suffix}, {size:.0f} MB: {ours['cpu_seconds']:.2f} CPU s, "
            f"peak {ours['peak_mib']:.0f} MiB (at most {PEAK_MIB:.0f})",
            ours["peak_mib"] <= PEAK_MIB,
        )
        path.unlink()


def _read_file(path: str) -> dict[str, float]:
    from planner.pricing.sources.aws_offer_file import AwsOfferFile
    from planner.pricing.sources.page import RawPage

    page = RawPage(path=Path(path), ref="made")
    page.sha256  # noqa: B018 - hashing is not reading; it is cached from here on
    result, spent = _timed(lambda: AwsOfferFile().parse([page], fetched_at=datetime.now(UTC)))
    assert len(result.offers) == 1, result
    return spent


def _scan_bare(path: str) -> dict[str, float]:
    if path.endswith(".json"):
        body = Path(path).read_bytes()
        return _timed(lambda: json.loads(body))[1]
    with Path(path).open(encoding="utf-8", newline="") as file:
        return _timed(lambda: sum(1 for _ in csv.reader(file)))[1]


# --- ingest


def _ingest(folder: Path, asked: argparse.Namespace) -> Lines:
    """Offers made, hashed and appended, in one transaction."""
    count = 10**6 if asked.full else 10**5
    spent = _child("append", folder / "ingest.sqlite", count)
    seconds = spent["cpu_seconds"] * 10**6 / count
    yield (
        f"{count:,} offers appended, sqlite: {spent['cpu_seconds']:.1f} CPU s, "
        f"peak {spent['peak_mib']:.0f} MiB: {seconds:.0f} s a million "
        f"(at most {INGEST_SECONDS_A_MILLION:.0f})",
        seconds <= INGEST_SECONDS_A_MILLION,
    )


def _append(path: str, count: str) -> dict[str, float]:
    from planner.pricing.store import PriceStore

    with PriceStore.open(path) as store:
        made = sum(1 for _ in price_makers.offers(1))  # imports are not ingest
        added, spent = _timed(lambda: store.append(price_makers.offers(int(count))))
    assert (made, added) == (1, int(count))
    return spent


# --- history


def _history(folder: Path, asked: argparse.Namespace) -> Lines:
    """Latest and as-of look-ups in a long history."""
    rows = 10**7 if asked.full else 10**6
    path = folder / "history.sqlite"
    yield from _told("sqlite", _child("history", path, rows))
    path.unlink()
    if not asked.postgres:
        yield "history, postgresql: not measured; name a server with --postgres", None
        return
    with _database(asked.postgres) as address:
        yield from _told("postgresql", _child("history", address, rows))


def _told(engine: str, found: dict[str, Any]) -> Lines:
    yield f"{found['rows']:,} rows of history, {engine}: made in {found['made_seconds']:.0f} s", None
    for name, (milliseconds, offers, bar) in found["queries"].items():
        limit = "" if bar is None else f" (at most {bar:.0f})"
        yield (
            f"  {name}: {milliseconds:.1f} ms, {offers} offers{limit}",
            None if bar is None else milliseconds <= bar,
        )


def _long_history(address: str, rows: str) -> dict[str, Any]:
    from planner.pricing.store import PriceStore

    PriceStore.open(address).close()
    began = time.monotonic()
    made = _filled(address, int(rows))
    seconds = time.monotonic() - began
    then = datetime(2026, 3, 1, tzinfo=UTC)
    queries = {}
    with PriceStore.open(address) as store:
        for label, (item, region) in (("usual", price_makers.USUAL), ("busy", price_makers.BUSY)):
            for what, as_of, bar in (("latest", None, LATEST_MS), ("as of a date", then, AS_OF_MS)):
                queries[f"{what}, {label} item and region"] = (
                    *_least(lambda: store.latest(as_of, item=item, region=region)), bar,  # noqa: B023
                )  # fmt: skip
        queries["latest, everything"] = (*_least(store.latest, tries=1), None)
        queries["known, 1,000 prices"] = (
            *_least(lambda: store.known([o.price_id for o in price_makers.offers(1000)])), None,
        )  # fmt: skip
    return {"rows": made, "made_seconds": seconds, "queries": queries}


def _filled(address: str, rows: int) -> int:
    if "://" not in address:
        import sqlite3

        plain = sqlite3.connect(address, isolation_level=None)
        plain.execute("PRAGMA synchronous = OFF")
        plain.execute("PRAGMA cache_size = -1500000")
        indexes = plain.execute(
            "SELECT name, sql FROM sqlite_master "
            "WHERE type = 'index' AND tbl_name = 'observations' AND sql NOT NULL"
        ).fetchall()
        for name, _ in indexes:
            plain.execute(f"DROP INDEX {name}")
        plain.execute("BEGIN")
        price_makers.fill_with_history(plain, "sqlite", rows)
        for _, statement in indexes:
            plain.execute(statement)
        plain.execute("COMMIT")
        plain.execute("ANALYZE")
        made = int(plain.execute("SELECT count(*) FROM observations").fetchone()[0])
        plain.close()
        return made
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET maintenance_work_mem = '512MB'")
        indexes = connection.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'observations' "
            "AND indexname <> 'observations_pkey'"
        ).fetchall()
        for name, _ in indexes:
            connection.execute(f"DROP INDEX {name}")
        price_makers.fill_with_history(connection, "postgresql", rows)
        for _, statement in indexes:
            connection.execute(statement)
        connection.execute("VACUUM ANALYZE observations")
        return int(connection.execute("SELECT count(*) FROM observations").fetchone()[0])


@contextmanager
def _database(conninfo: str) -> Iterator[str]:
    import psycopg

    name = f"bench_prices_{os.getpid()}"
    with psycopg.connect(f"{conninfo} dbname=test", autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        try:
            where = server.info
            yield f"postgresql://{where.user}@{where.host}:{where.port}/{name}"
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


# --- measuring


def _least(ask: Callable[[], Any], tries: int = TRIES) -> tuple[float, int]:
    """Milliseconds of the quickest of several runs, and how much it answered."""
    found: Any = ()
    least = float("inf")
    for _ in range(tries):
        began = time.perf_counter()
        found = ask()
        least = min(least, time.perf_counter() - began)
    return least * 1000, len(found)


def _timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    before = time.process_time()
    result = work()
    spent = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1024 if sys.platform != "darwin" else 1024**2
    )
    return result, {"cpu_seconds": spent, "peak_mib": peak}


def _child(part: str, *values: object) -> dict[str, Any]:
    command = [sys.executable, __file__, "--part", part, *map(str, values)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return dict(json.loads(done.stdout))


_SECTIONS: dict[str, Callable[[Path, argparse.Namespace], Lines]] = {
    "files": _files,
    "ingest": _ingest,
    "history": _history,
}
_PARTS: dict[str, Callable[..., dict[str, Any]]] = {
    "read-file": _read_file,
    "scan-bare": _scan_bare,
    "append": _append,
    "history": _long_history,
}

if __name__ == "__main__":
    sys.exit(main())
