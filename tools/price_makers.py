"""Makes what tools/bench_prices.py reads: EC2 offer files of real shape, offers, and stores of long history.

An offer file is one block of 240 products, repeated under new SKUs. As in the file of us-east-1, a product in
use carries one on-demand rate and 20 reserved ones (2 terms × 2 classes × 5 rates), others only the first.
A long history is written by SQL out of a table of prices, a day at a time: the rows of one price lie apart.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/pricing/sources/helpers")]

from offer_files import as_csv, as_json, row  # noqa: E402

from planner.pricing.offer import FIELDS, Offer  # noqa: E402

_SKU = "SKU@@@@@@"
_SYSTEMS = ("Linux", "Windows", "RHEL", "SUSE")
_STATES = ("Used", "Used", "UnusedCapacityReservation", "AllocatedCapacityReservation")
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
ITEMS, REGIONS, CONTRACTS, DAYS = 400, 20, 5, 250
BUSY = ("made-busy", "region-00")
"""Item and region of 6 zones with a spot price that changed 20,000 times each."""
USUAL = ("made-007", "region-07")


def offer_file(path: Path, size_bytes: int) -> None:
    """Write an offer file, CSV or JSON by its suffix, with ten GPU types at its end."""
    block, tail = list(_block()), [row(f"GPU{n:013d}", "21.9576420000") for n in range(1)]
    write = _write_csv if path.suffix == ".csv" else _write_json
    write(path, block, tail, size_bytes)


def _block() -> Iterator[dict[str, str]]:
    for n in range(240):
        sku = f"{_SKU}{n:05d}"
        described = {
            "Instance_Type": f"m{n % 7}.{n % 40}xlarge",
            "Operating_System": _SYSTEMS[n % 4],
            "Tenancy": "Shared" if n % 2 else "Dedicated",
            "CapacityStatus": _STATES[n // 8 % 4],
            "GPU": "",
        }
        yield row(sku, f"{n % 97 + 0.5:.10f}", **described)
        if described["CapacityStatus"] != "Used":
            continue
        for code, (length, offering, payment) in enumerate(
            product(
                ("1yr", "3yr"),
                ("standard", "convertible"),
                ("No Upfront", "Partial Upfront", "Partial Upfront", "All Upfront", "All Upfront"),
            )
        ):
            reserved = {
                "TermType": "Reserved",
                "LeaseContractLength": length,
                "OfferingClass": offering,
                "PurchaseOption": payment,
                "OfferTermCode": f"TERMCODE{code:02d}",
            }
            yield row(sku, f"{n % 89 + 0.25:.10f}", **described, **reserved)


def _write_csv(path: Path, block: list[dict[str, str]], tail: list[dict[str, str]], size: int) -> None:
    lines = as_csv(block).splitlines(keepends=True)
    head, body = b"".join(lines[:6]), b"".join(lines[6:])
    with path.open("wb") as file:
        file.write(head)
        for number in range(max(1, size // len(body))):
            file.write(body.replace(_SKU.encode(), b"SKU%06d" % number))
        file.write(b"".join(as_csv(tail).splitlines(keepends=True)[6:]))


def _write_json(path: Path, block: list[dict[str, str]], tail: list[dict[str, str]], size: int) -> None:
    whole, last = json.loads(as_json(block)), json.loads(as_json(tail))
    times = max(1, size // len(as_json(block)))
    head = {key: value for key, value in whole.items() if key not in ("products", "terms", "attributesList")}
    with path.open("wb") as file:
        file.write(json.dumps(head, indent=2).encode().rstrip(b"}\n ") + b',\n"products": {\n')
        _repeat(file, whole["products"], last["products"], times)
        file.write(b'},\n"terms": {\n"OnDemand": {\n')
        _repeat(file, whole["terms"]["OnDemand"], last["terms"]["OnDemand"], times)
        file.write(b'},\n"Reserved": {\n')
        _repeat(file, whole["terms"]["Reserved"], {}, times)
        file.write(b'}\n},\n"attributesList": {}\n}\n')


def _repeat(file: Any, members: dict[str, Any], last: dict[str, Any], times: int) -> None:
    """Members of an object, so many times under other names, then the last ones."""
    text = json.dumps(members, indent=2).encode()[1:-1]
    for number in range(times):
        file.write((b"" if number == 0 else b",\n") + text.replace(_SKU.encode(), b"SKU%06d" % number))
    if last:
        file.write(b",\n" + json.dumps(last, indent=2).encode()[1:-1])


def offers(count: int) -> Iterator[Offer]:
    """Distinct on-demand offers, made one at a time."""
    for n in range(count):
        yield _offer(f"made-{n % 5000:04d}", f"region-{n % 20:02d}", "on_demand", None, n // 5000, n)


def _offer(item: str, region: str, contract: str, zone: str | None, day: int, n: int) -> Offer:
    return Offer(
        kind="cloud_instance",
        provider="made",
        item=item,
        region=region,
        zone=zone,
        contract=contract,  # type: ignore[arg-type]
        unit="instance_hour",
        amount=Decimal(1_000_000 + n % 777_777) / 1_000_000,
        currency="USD",
        tax="excluded",
        os="linux",
        tenancy="shared",
        sku=f"SKU{n:013d}",
        source="made",
        source_ref="https://prices.example/offers/v1.0/aws/AmazonEC2/current/index.csv",
        raw_sha256="0" * 64,
        observed_at=_BEGAN + timedelta(days=day),
        fetched_at=_BEGAN + timedelta(days=day),
        gpu_model="a100-sxm4-40gb",
        gpu_count=8,
        gpu_mem_mib=40960,
        gpu_form="sxm",
        vcpu=Decimal(96),
        ram_gib=Decimal(1152),
    )


def fill_with_history(connection: Any, dialect: str, rows: int) -> int:
    """Fill the store's table with about so many rows; returns how many there are then.

    connection: of sqlite3, or of psycopg in autocommit.
    """
    days = max(1, rows // (ITEMS * REGIONS * CONTRACTS))
    contracts = ("on_demand", "spot", "community", "capacity_block", "purchase")
    usual = [
        _offer(f"made-{item:03d}", f"region-{region:02d}", contract, None, 0, item)
        for item in range(ITEMS)
        for region in range(REGIONS)
        for contract in contracts
    ]
    busy = [_offer(*BUSY, "spot", f"{BUSY[1]}{zone}", 0, 7) for zone in "abcdef"]
    _write_history(connection, dialect, usual, days, "days")
    _write_history(connection, dialect, busy, max(1, 20_000 * rows // 10**7), "minutes")
    known_by = "price_id, kind, provider, item, region, contract, condition"
    connection.execute(
        f"INSERT INTO prices ({known_by}) SELECT DISTINCT {known_by} FROM observations "
        "WHERE provider = 'made'"
    )
    for statement in ("ANALYZE",) if dialect == "sqlite" else ("VACUUM ANALYZE observations",):
        connection.execute(statement)
    return int(connection.execute("SELECT count(*) FROM observations").fetchone()[0])


def _write_history(connection: Any, dialect: str, prices: list[Offer], times: int, step: str) -> None:
    columns = ("price_id", *FIELDS)
    declared = ", ".join(f"{name} TEXT" if name not in _INTEGERS else f"{name} INTEGER" for name in columns)
    connection.execute("DROP TABLE IF EXISTS made_prices")
    connection.execute(f"CREATE {'TEMP ' if dialect == 'sqlite' else ''}TABLE made_prices ({declared})")
    slots = ", ".join(["?" if dialect == "sqlite" else "%s"] * len(columns))
    cursor = connection.cursor()
    cursor.executemany(f"INSERT INTO made_prices VALUES ({slots})", [o.to_row()[1:] for o in prices])
    if dialect == "sqlite":
        new_id = "lower(hex(randomblob(16)))"
        amount = "cast(1 + (random() & 65535) / 65536.0 AS TEXT)"
        seen = f"strftime('%Y-%m-%dT%H:%M:%S.000000Z', '2026-01-01', '+' || t.n || ' {step}')"
        counted = f"WITH RECURSIVE t(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM t WHERE n + 1 < {times}) "
        source = "t CROSS JOIN made_prices"
    else:
        new_id, amount = "replace(gen_random_uuid()::text, '-', '')", "(1 + random())::numeric(12,6)::text"
        seen = (
            f"to_char(timestamp '2026-01-01' + t.n * interval '1 {step}', "
            '\'YYYY-MM-DD"T"HH24:MI:SS.000000"Z"\')'
        )
        counted, source = "", f"generate_series(0, {times - 1}) AS t(n) CROSS JOIN made_prices"
    changed = {"amount": amount, "observed_at": seen, "fetched_at": seen}
    chosen = ", ".join(changed.get(name, f"made_prices.{name}") for name in columns)
    connection.execute(
        f"INSERT INTO observations (observation_id, {', '.join(columns)}) "
        f"{counted}SELECT {new_id}, {chosen} FROM {source}"
    )
    connection.execute("DROP TABLE made_prices")


_INTEGERS = frozenset({"term_months", "gpu_count", "gpu_mem_mib", "sample_n"})
