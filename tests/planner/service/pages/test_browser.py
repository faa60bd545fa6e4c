"""Every page in a real browser: sound for screen readers, fit for a phone, silent, alone on the network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

PAGES = {
    "start": "/",
    "answer": "/?model=bert-base&epochs=10",
    "refused": "/?model=bert-base&epochs=none&budget=x",
    "infeasible": "/?model=bert-base&budget=0.0001",
    "plan": "/plan?model=bert-base&epochs=10&point=3",
    "prices": "/prices",
    "prices-of-nothing": "/prices?item=p4d.24xlarg",
    "history": "/prices/history?item=p4d.24xlarge",
    "hardware": "/hardware?kind=gpu",
    "card": "/hardware/rtx-4090-24gb",
    "accuracy": "/accuracy",
    "schedule": "/schedule",
    "settings": "/settings",
}
SERIOUS = ("serious", "critical")


@pytest.mark.parametrize("name", PAGES)
def test_each_page_is_sound_at_desktop_and_phone_width(look: Any, name: str, tmp_path: Path) -> None:
    from axe_playwright_python.sync_playwright import Axe

    looked = look(1280)
    looked.go(PAGES[name])
    for width, scheme in ((1280, "light"), (360, "dark")):
        looked.page.set_viewport_size({"width": width, "height": 800})
        looked.page.emulate_media(color_scheme=scheme)
        picture = tmp_path / f"{name}-{width}.png"
        looked.page.screenshot(path=picture, full_page=True)
        assert picture.stat().st_size > 5_000
        found = Axe().run(looked.page).response["violations"]
        bad = [each for each in found if each["impact"] in SERIOUS]
        assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in bad] == []
        wider = looked.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wider <= 0, "the page scrolls sideways"


def test_main_flow_with_the_keyboard_alone(look: Any) -> None:
    looked = look()
    looked.go("/")
    page = looked.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.wait_for_function("document.activeElement.id === 'main'")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "f-model"
    page.keyboard.press("Enter")
    page.wait_for_selector("#answer table")
    assert "model=bert-base" in page.url
    assert page.get_attribute("#answer", "aria-live") == "polite"
    page.locator("#answer tbody a").first.press("Enter")
    page.wait_for_selector("#chosen")
    assert "runpod" in page.inner_text("#chosen") or "rtx" in page.inner_text("#chosen")


def test_main_flow_works_without_script(look: Any) -> None:
    looked = look(script=False)
    looked.go("/")
    looked.page.fill("#f-model", "resnet50")
    looked.page.fill("#f-own", "rig-4x-rtx-4090")
    looked.page.click("button[type=submit]")
    assert "resnet50" in looked.page.inner_text("#answer .about")
    assert "rig-4x-rtx-4090 own" in looked.page.inner_text("#answer table")


def test_a_refused_field_has_its_message_beside_it_and_the_focus(look: Any) -> None:
    looked = look()
    looked.go("/")
    page = looked.page
    page.fill("#f-epochs", "ten")
    page.fill("#f-budget", "-1")
    page.keyboard.press("Enter")
    page.wait_for_selector("#e-epochs")
    assert page.evaluate("document.activeElement.id") == "f-epochs"
    for field in ("epochs", "budget"):
        assert page.get_attribute(f"#f-{field}", "aria-invalid") == "true"
        assert f"e-{field}" in page.get_attribute(f"#f-{field}", "aria-describedby")
    assert "must be a number" in page.inner_text("#e-epochs")
    page.fill("#f-epochs", "3")
    page.fill("#f-budget", "")
    page.keyboard.press("Enter")
    page.wait_for_selector("#answer table")
    assert page.locator("[aria-invalid]").count() == 0


def test_going_back_shows_the_answer_before(look: Any) -> None:
    looked = look()
    looked.go("/")
    page = looked.page
    for model in ("resnet50", "bert-base"):
        page.fill("#f-model", model)
        page.keyboard.press("Enter")
        page.wait_for_function(f"document.title.startsWith('{model}')")
    page.go_back()
    page.wait_for_function("document.title.startsWith('resnet50')")
    assert page.input_value("#f-model") == "resnet50"


def test_choosing_a_point_changes_everything_that_follows(look: Any) -> None:
    looked = look()
    looked.go("/plan?model=bert-base&epochs=10")
    page = looked.page
    before = page.inner_text("#chosen"), page.inner_text("dl.summary"), page.inner_text("section:has(#why)")
    page.locator("svg a.point").nth(4).click()
    page.wait_for_url("**point=5")
    after = page.inner_text("#chosen"), page.inner_text("dl.summary"), page.inner_text("section:has(#why)")
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert page.locator("svg a[aria-current]").count() == 1
    assert page.locator("tr.chosen").count() == 1


def test_the_table_says_what_the_terminal_says(look: Any) -> None:
    """The same rows and cells; a narrow screen leaves columns out, never figures."""
    from planner import api
    from planner.reports.pareto_table import shown

    looked = look()
    looked.go("/?model=bert-base&epochs=10&as_of=2026-12-01")
    rows = looked.page.locator("#answer tbody tr")
    wanted = shown(api.optimize("bert-base", epochs=10, as_of="2026-12-01").to_json())
    assert rows.count() == len(wanted.options)
    costs = looked.page.locator("#answer td.c-cost").all_inner_texts()
    assert costs == [cells["cost"] for cells in wanted.cells]


def test_a_plan_and_its_options_download(look: Any, tmp_path: Path) -> None:
    looked = look()
    looked.go("/?model=bert-base&epochs=10")
    for link, name in (("Plan as JSON", "plan.json"), ("Options as CSV", "options.csv")):
        with looked.page.expect_download() as caught:
            looked.page.get_by_role("link", name=link).click()
        assert caught.value.suggested_filename == name
        caught.value.save_as(tmp_path / name)
    assert '"kind": "optimize"' in (tmp_path / "plan.json").read_text(encoding="utf-8")
    assert (tmp_path / "options.csv").read_text(encoding="utf-8").startswith("rank,option")


def test_paper_holds_the_answer_and_not_the_form(look: Any) -> None:
    looked = look()
    looked.go("/?model=bert-base&epochs=10")
    looked.page.emulate_media(media="print")
    assert not looked.page.is_visible("form.ask")
    assert looked.page.is_visible("#answer table")


def test_a_schedule_is_mended_line_by_line(look: Any) -> None:
    looked = look()
    looked.go("/schedule")
    page = looked.page
    sound = page.input_value("#f-schedule")
    page.fill("#f-schedule", sound.replace("months: 12", "months: twelve"))
    page.click("button[value=check]")
    page.wait_for_selector("#e-schedule")
    (line,) = [number for number, text in enumerate(sound.splitlines(), 1) if text.startswith("months:")]
    page.click(f"[data-line='{line}']")
    chosen = page.evaluate(
        "(a => a.value.slice(a.selectionStart, a.selectionEnd))(document.querySelector('#f-schedule'))"
    )
    assert chosen == "months: twelve"
    assert page.get_attribute("#f-schedule", "aria-invalid") == "true"
    page.fill("#f-schedule", sound)
    page.click("button[value=check]")
    page.wait_for_selector("#said-title:text('Sound')")


def test_a_job_is_added_to_a_schedule_by_form(look: Any) -> None:
    looked = look(script=False)
    looked.go("/schedule")
    page = looked.page
    page.click("summary")
    page.fill("#f-id", "one-more")
    page.fill("#f-workload", "bert-base")
    page.click("button[value=add]")
    assert "- id: one-more" in page.input_value("#f-schedule")
    assert "stands in the text now" in page.inner_text(".beside")
