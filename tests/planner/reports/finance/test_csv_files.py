from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from planner.reports.finance.csv_files import PLAIN, encoded
from planner.reports.finance.months import hours_of, month, rounded_together, split_by_month
from planner.reports.finance.table import Table, columns


def test_c36_text_is_defused_and_a_negative_amount_stays_a_number() -> None:
    rows = [('=HYPERLINK("http://x")', Decimal("-12.50")), ("-5", Decimal(1))]
    table = Table("t", "T", "", columns(Label="text", Amount="money"), lambda: rows)
    said = b"".join(encoded(table, PLAIN)).decode().splitlines()
    assert said[1:] == ['"\'=HYPERLINK(""http://x"")",-12.50', "'-5,1.00"]


def test_c37_a_run_over_the_month_s_end_is_cut_in_the_time_zone_asked_for() -> None:
    start, end = datetime(2026, 10, 31, 20, tzinfo=UTC), datetime(2026, 11, 1, 8, tzinfo=UTC)
    for zone, wanted in (("UTC", [4, 8]), ("America/Los_Angeles", [11, 1])):
        assert [amount for _, amount in split_by_month(Decimal(12), start, end, ZoneInfo(zone))] == wanted


def test_c38_a_month_has_its_own_hours() -> None:
    zone = ZoneInfo("UTC")
    assert [hours_of(month(*m), zone) for m in ((2027, 2), (2028, 2), (2027, 3))] == [672, 696, 744]


def test_rounded_amounts_add_up_to_their_rounded_sum() -> None:
    amounts = [Decimal("0.333"), Decimal("-0.006"), Decimal("0.339")]
    assert sum(rounded_together(amounts, Decimal("0.01"))) == Decimal("0.67")
