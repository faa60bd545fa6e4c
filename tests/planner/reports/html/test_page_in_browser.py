"""The HTML report in a real browser: its charts are drawn, nothing is loaded, nothing complains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def report(tmp_path: Path) -> Path:
    from planner import optimize
    from planner.reports.html.page import page

    plan = optimize("bert-base", epochs=1, gpu=["t4-16gb", "rtx-4090-24gb"], spot=False)
    file = tmp_path / "plan.html"
    file.write_text(page(plan.to_json()), encoding="utf-8")
    return file


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360], ids=["desktop", "phone"])
def test_charts_are_drawn_and_nothing_is_loaded(browser: Any, report: Path, width: int, dark: bool) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme="dark" if dark else "light"
    )
    page = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    page.wait_for_selector("svg.marks, canvas.marks", timeout=20_000)
    drawn = page.locator("svg.marks, canvas.marks").count()
    wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    context.close()
    assert drawn >= 3
    assert complaints == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert wide <= 0, "the page is wider than the screen"


def test_no_report_names_an_address_to_load_from(report: Path) -> None:
    text = report.read_text(encoding="utf-8")
    assert 'src="http' not in text
    assert "@import url(http" not in text
    assert "</body>" in text
    assert len(text) > 500_000, "the charts' library is not in it"
