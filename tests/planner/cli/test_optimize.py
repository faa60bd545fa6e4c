from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.errors import Infeasible, NoPrice
from planner.models.errors import UnknownName
from planner.request import OptimizeRequest

Planner = Callable[..., Any]
ASK = ("optimize", "--model", "bert-base", "--epochs", "10")


def test_stdout_holds_the_answer_and_stderr_the_warnings(planner: Planner, asked: list[Any]) -> None:
    said = planner(*ASK)
    assert said.code == 0
    assert "p4d.24xlarge" in said.out
    assert "rig-8x-rtx-4090" in said.out
    assert "older than a year" not in said.out
    assert said.err == "warning: one price is older than a year\n"


def test_json_is_the_plans_document(planner: Planner, asked: list[Any], plan: Any) -> None:
    assert json.loads(planner(*ASK, "--format", "json").out) == plan.to_json()


def test_the_same_request_answers_in_the_same_bytes(planner: Planner, asked: list[Any]) -> None:
    for form in ("table", "json", "csv", "markdown", "html"):
        assert planner(*ASK, "--format", form).out == planner(*ASK, "--format", form).out


def test_jsonl_holds_one_option_a_line(planner: Planner, asked: list[Any], plan: Any) -> None:
    lines = planner(*ASK, "--format", "jsonl").out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [option.id for option in plan.options]


def test_every_key_of_a_request_is_a_flag(planner: Planner, asked: list[Any]) -> None:
    given = {
        "model": "bert-base", "epochs": "3", "dataset_samples": "100", "batch_size": "64", "seq_len": "128",
        "gpu": "t4-16gb", "provider": "aws", "region": "us-east-1", "own": "rig-1x-rtx-4090",
        "precision": "bf16-amp", "budget": "22", "deadline": "6h", "confidence": "90", "horizon": "2y",
        "utilization": "0.7", "electricity_price": "0.31", "pue": "1.2", "max_gpus": "4", "currency": "EUR",
        "fx": "USD=0.86", "as_of": "2026-06-30", "seed": "7", "max_price_age": "90d", "assume": "x=1",
        "input_shape": "784", "vocab_size": "100", "sample_cpu_seconds": "0.01", "cores_per_gpu": "8",
        "sample_bytes": "150e3", "storage_bytes_per_second": "1e9",
    }  # fmt: skip
    assert {*given, "tokens", "spot", "torch_compile"} == {field.name for field in fields(OptimizeRequest)}
    flags = [part for key, value in given.items() for part in (f"--{key.replace('_', '-')}", value)]
    assert planner("optimize", *flags, "--no-spot", "--torch-compile").code == 0
    assert asked == [OptimizeRequest.of(**given, spot=False, torch_compile=True)]


def test_lists_may_be_repeated_or_separated_by_commas(planner: Planner, asked: list[Any]) -> None:
    planner(*ASK, "--gpu", "t4-16gb,l4-24gb")
    planner(*ASK, "--gpu", "t4-16gb", "--gpu", "l4-24gb")
    assert asked[0] == asked[1]
    assert asked[0].gpu == ("t4-16gb", "l4-24gb")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--budget", "nan"), "error: --budget nan: must be a finite number\n"),
        (("--budget", "-5"), "error: --budget -5: must lie between"),
        (("--utilization", "50"), "error: --utilization 50: must lie between 0.001 and 1"),
        (("--deadline", "soon"), "error: --deadline soon: must be a span"),
        (("--precision", "bf15-amp"), "bf16-amp"),
        (("--fail-above", "inf"), "error: --fail-above inf: must be a finite number"),
        (("--bugdet", "5"), 'error: no option "--bugdet". Did you mean "--budget"?'),
        (("--format", "jsn"), 'error: no format "jsn". Did you mean "json"?'),
        (("--tokens", "5"), "give epochs or tokens, not both"),
    ],
)
def test_a_bad_flag_is_refused_in_one_line_with_code_2(
    planner: Planner, asked: list[Any], flags: tuple[str, ...], says: str
) -> None:
    said = planner(*ASK, *flags)
    assert (said.code, said.out, asked) == (2, "", [])
    assert says in said.err
    assert said.err.count("\n") == 1


def test_an_unknown_model_names_the_nearest(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner import api

    def optimize(request: Any) -> Any:
        raise UnknownName("workload", request.model, ["bert-base", "gpt2"])

    monkeypatch.setattr(api, "optimize", optimize)
    said = planner("optimize", "--model", "bert-bse")
    assert (said.code, said.out) == (2, "")
    assert said.err == 'error: no workload "bert-bse". Did you mean "bert-base"?\n'


def test_an_unknown_name_from_the_file_says_which_file_and_key(
    planner: Planner, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    from planner import api

    def optimize(request: Any) -> Any:
        raise UnknownName("GPU", request.gpu[0], ["rtx-4090-24gb"])

    monkeypatch.setattr(api, "optimize", optimize)
    file = home / ".config/planner/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('gpu = ["rtx-4900-24gb"]\n')
    said = planner(*ASK)
    assert said.code == 2
    assert f'{file}, key "gpu"' in said.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Infeasible("budget", "1", "p4d.24xlarge spot 21.70", "nothing costs 1 or less"), 3),
        (NoPrice("no offer has a price"), 4),
        (RuntimeError("the roof"), 1),
    ],
)
def test_each_kind_of_failure_has_its_code_and_no_traceback(
    planner: Planner, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    from planner import api

    def optimize(request: Any) -> Any:
        raise error

    monkeypatch.setattr(api, "optimize", optimize)
    said = planner(*ASK)
    assert (said.code, said.out) == (code, "")
    assert said.err.startswith("error: ")
    assert "Traceback" not in said.err
    assert ("--debug" in said.err) is (code == 1)
    assert "Traceback" in planner(*ASK, "--debug").err
    monkeypatch.setenv("PLANNER_DEBUG", "1")
    assert "Traceback" in planner(*ASK).err


def test_fail_above_prints_the_plan_and_exits_7(planner: Planner, asked: list[Any]) -> None:
    assert planner(*ASK, "--fail-above", "2.96").code == 0
    said = planner(*ASK, "--fail-above", "2.95", "--format", "json")
    assert said.code == 7
    assert json.loads(said.out)["options"][0]["cost"]["p50"] == "2.96"
    assert "2.96" in said.err


def test_explain_prints_what_explain_answers(planner: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner import api

    class Explained:
        warnings = ()

        def explain(self, which: str) -> Any:
            return self

        def to_json(self) -> dict[str, Any]:
            leaf = {"unit": "USD", "formula": "1 × 2", "source": "seller", "basis": "quoted", "children": []}
            compute = {**leaf, "term": "compute", "value": "33.5", "amount": "33.50"}
            credit = {**leaf, "term": "credit", "value": "-12.50", "amount": "-12.50"}
            cost = {**leaf, "term": "cost", "value": "21.00", "amount": None, "children": [compute, credit]}
            return {"id": "p4d", "total": "21.00", "currency": "USD", "terms": [cost]}

    monkeypatch.setattr(api, "optimize", lambda request: Explained())
    rows = list(csv.DictReader(planner(*ASK, "--explain", "3", "--format", "csv").out.splitlines()))
    assert sum(Decimal(row["amount"]) for row in rows if row["amount"]) == Decimal("21.00")
    page = planner(*ASK, "--explain", "3").out
    assert "└─ cost" in page
    assert "compute" in page
    assert "1 × 2" in page
    assert "[quoted, seller]" in page


def test_c36_a_label_is_defused_and_a_credit_stays_a_number(planner: Planner, asked: list[Any]) -> None:
    out = planner(*ASK, "--format", "csv", "--project", '=HYPERLINK("http://x")').out
    rows = list(csv.DictReader(out.splitlines()))
    assert {row["project"] for row in rows} == {'\'=HYPERLINK("http://x")'}
    assert Decimal(rows[0]["cost_usd_p50"]) == Decimal("2.96")
