"""What is no CSV is said in words, wherever it stops being one."""

from __future__ import annotations

import pytest

from planner.pricing.errors import BadPriceFile
from planner.pricing.sources.csv_rows import CsvRows


def test_rows_come_with_their_lines() -> None:
    rows = CsvRows('a,b\r\n1,"x\ny"\r\n', "file")
    assert rows.names == ("a", "b")
    assert list(rows) == [{"a": "1", "b": "x\ny"}]
    assert rows.line == 3
    assert CsvRows("", "file").names == ()


@pytest.mark.parametrize("text", ['"a"b,c\n1,2\n', 'a,b\n1,"2', 'a\n"1"2\n'], ids=["header", "end", "row"])
def test_a_broken_quote_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(BadPriceFile, match=r"file, row \d+: not CSV"):
        list(CsvRows(text, "file"))
