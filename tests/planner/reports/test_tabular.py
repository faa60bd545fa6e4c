from __future__ import annotations

import csv
import html.parser
import io
import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.reports import tabular
from planner.reports.tabular import Cell

AMOUNTS = st.decimals(min_value=-(10**9), max_value=10**9, places=6)
LABELS = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\x00", exclude_categories=["Cs", "Cc"]), max_size=20
)
ROWS = st.lists(st.tuples(LABELS, AMOUNTS, st.floats(0, 1e6), st.integers()), min_size=1, max_size=6).map(
    lambda rows: [dict(zip(("label", "amount", "hours", "count"), row, strict=True)) for row in rows]
)


def test_c36_a_formula_is_defused_and_a_negative_amount_stays_a_number() -> None:
    rows: list[dict[str, Cell]] = [
        {"project": '=HYPERLINK("http://x")', "amount": Decimal("-12.50")},
        {"project": "plain", "amount": Decimal("100")},
    ]
    read = list(csv.DictReader(io.StringIO(tabular.to_csv(rows))))
    assert read[0]["project"] == '\'=HYPERLINK("http://x")'
    assert read[0]["amount"] == "-12.50"
    assert sum(Decimal(row["amount"]) for row in read) == Decimal("87.50")


@pytest.mark.parametrize("label", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", " =1", "＝1+1", "\n=1"])
def test_c36_every_way_into_a_formula_is_closed(label: str) -> None:
    assert tabular.guarded(label) == "'" + label


@pytest.mark.parametrize("text", ["-12.50", "+3", "-1e-5", "0"])
def test_c36_text_that_is_a_number_is_left_alone(text: str) -> None:
    assert tabular.guarded(text) == text


def test_unknown_is_empty_and_never_zero() -> None:
    assert tabular.to_csv([{"a": None, "b": 0, "c": False}]) == "a,b,c\n,0,false\n"


def test_large_and_small_money_is_never_written_in_powers_of_ten() -> None:
    assert tabular.plain(Decimal("1E+6")) == "1000000"
    assert tabular.plain(Decimal("1E-8")) == "0.00000001"


class _Cells(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1] and data.strip():
            self.rows[-1][-1] += data


@given(ROWS)
def test_the_same_numbers_in_each_format(rows: list[dict[str, Cell]]) -> None:
    expected = [(Decimal(str(row["amount"])), Decimal(str(row["hours"])), row["count"]) for row in rows]
    as_csv = [
        (Decimal(row["amount"]), Decimal(row["hours"]), int(row["count"]))
        for row in csv.DictReader(io.StringIO(tabular.to_csv(rows), newline=""))
    ]
    markdown = [line.rsplit(" | ", 3)[1:] for line in tabular.to_markdown(rows).split("\n")[2:-1]]
    as_markdown = [(Decimal(a), Decimal(h), int(c.removesuffix(" |"))) for a, h, c in markdown]
    page = _Cells()
    page.feed(tabular.to_html(rows, "title"))
    as_html = [
        (Decimal(cells[1]), Decimal(cells[2]), int(cells[3])) for cells in page.rows[1:] if len(cells) == 4
    ]
    jsonl = [json.loads(line) for line in tabular.to_jsonl(rows).split("\n")[:-1]]
    as_jsonl = [(Decimal(row["amount"]), Decimal(str(row["hours"])), row["count"]) for row in jsonl]
    assert as_csv == as_markdown == as_html == as_jsonl == expected


@given(ROWS)
def test_labels_come_back_from_csv_with_at_most_an_apostrophe_more(rows: list[dict[str, Cell]]) -> None:
    read = csv.DictReader(io.StringIO(tabular.to_csv(rows), newline=""))
    for row, before in zip(read, rows, strict=True):
        assert row["label"] in (before["label"], f"'{before['label']}")


def test_markdown_and_html_keep_their_shape_whatever_the_label() -> None:
    rows: list[dict[str, Cell]] = [{"label": "a|b\n<script>alert(1)</script>", "n": 1}]
    markdown = tabular.to_markdown(rows)
    assert markdown.count("\n") == 3
    assert "a\\|b<br>&lt;script&gt;" in markdown
    assert "<script>alert" not in tabular.to_html(rows, "<script>alert(2)</script>")
