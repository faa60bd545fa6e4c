"""The public functions on what ships: the main job, real prices, estimates and lists."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal

import pytest

import planner
from planner.errors import Infeasible, NothingStored, UsageError


@pytest.fixture(scope="module")
def main_job(tmp_path_factory: pytest.TempPathFactory) -> planner.Plan:
    """The main job, once for this file: in a store of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLANNER_STORE_URL", str(tmp_path_factory.mktemp("store") / "prices.sqlite"))
        return planner.optimize("bert-base", epochs=10, as_of="2026-12-01")


def test_the_main_job_puts_4090_rigs_and_p4d_side_by_side(main_job: planner.Plan) -> None:
    hardware = {o.hardware for o in main_job.options}
    assert {"p4d.24xlarge", "rig-1x-rtx-4090", "rig-4x-rtx-4090", "rig-8x-rtx-4090"} <= hardware
    assert main_job.front


def test_p4d_is_priced_as_the_vendor_does_now(main_job: planner.Plan) -> None:
    row = next(
        o
        for o in main_job.options
        if (o.hardware, o.purchase_model, o.region) == ("p4d.24xlarge", "on_demand", "us-east-1")
    )
    assert row.cost_lines[0].unit_price == Decimal("21.957642")
    assert row.prices[0].source
    assert row.prices[0].observed_at.year == 2026


def test_p4d_was_dearer_in_may_2025() -> None:
    now = planner.list_prices(item="p4d.24xlarge", region="us-east-1", contract="on_demand")
    then = planner.list_prices(
        item="p4d.24xlarge", region="us-east-1", contract="on_demand", as_of="2025-05-31"
    )
    assert [row["amount"] for row in now.rows] == ["21.957642"]
    assert [row["amount"] for row in then.rows] == ["32.7726"]


def test_every_row_of_the_main_job_adds_up_exactly(main_job: planner.Plan) -> None:
    for option in main_job.options:
        assert main_job.explain(option.rank).total == option.cost.p50
        assert sum((line.hours for line in option.time_lines), Decimal(0)) == option.time_hours.p50


def test_own_rows_appear_for_what_is_owned_only(main_job: planner.Plan) -> None:
    assert all(o.purchase_model != "own" for o in main_job.options)
    owned = planner.optimize("bert-base", epochs=10, own="rig-4x-rtx-4090")
    assert [o.hardware for o in owned.options if o.purchase_model == "own"] == ["rig-4x-rtx-4090"]


def test_filters_keep_what_they_name() -> None:
    answer = planner.optimize("bert-base", gpu=["A100"], provider="aws", max_gpus=8)
    assert {o.provider for o in answer.options} == {"aws"}
    assert {o.gpu.split("-")[0] for o in answer.options} == {"a100"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"gpu": "rtx-4900"}, 'no GPU "rtx-4900"'),
        ({"provider": "awz"}, 'Did you mean "aws"'),
        ({"region": "mars"}, 'no region "mars"'),
        ({"own": "rig-5x"}, "no rig"),
        ({"assume": {"pue": 1}}, 'no assumption "pue"'),
        ({"seq_len": 4096}, "holds at most 512"),
    ],
)
def test_a_name_nobody_knows_is_a_usage_error(values: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as error:
        planner.optimize("bert-base", **values)
    assert said in str(error.value)


def test_an_unknown_model_names_the_nearest() -> None:
    with pytest.raises(UsageError, match='Did you mean "bert-base"'):
        planner.optimize("bert-bse")


def test_a_budget_nothing_meets_names_the_cheapest() -> None:
    with pytest.raises(Infeasible, match=r"budget 0\.01, cheapest plan 0\.\d+"):
        planner.optimize("bert-base", epochs=10, budget="0.01")


def test_a_later_deadline_costs_no_more() -> None:
    costs = [
        min(o.cost.p50 for o in planner.optimize("bert-large", epochs=30, deadline=hours).front)
        for hours in ("6h", "24h", "240h")
    ]
    assert costs == sorted(costs, reverse=True)


def test_memory_of_one_step_is_estimated_with_the_reference_batch() -> None:
    found = planner.estimate_memory("bert-large", "RTX 4090")
    assert (found.gpu, found.micro_batch_size, found.size) == ("rtx-4090-24gb", 32, 384)
    assert found.to_json()["fits"] == "yes"
    assert found.max_micro_batch >= 32
    assert sum(found.room.breakdown.values()) == found.room.process_bytes[0]


def test_what_does_not_fit_comes_with_levers_and_their_price_in_time() -> None:
    found = planner.estimate_memory("bert-large", "T4", batch_size=256)
    assert found.to_json()["fits"] == "no"
    smaller = next(lever for lever in found.levers if lever["name"] == "smaller micro-batch")
    assert smaller["process_bytes"] < found.room.process_bytes[1]
    assert smaller["time_factor"] is not None
    assert found.levers[0]["goal"] == "all weights, same GPUs"
    assert (
        found.levers[0]["time_factor"]
        <= min(
            lever["time_factor"]
            for lever in found.levers
            if lever["fits"] == "yes" and "gpu_count" not in lever
        )
        * 1.03
    )


def test_llama_2_7b_on_an_rtx_4090_is_told_why_and_what_makes_it_fit() -> None:
    document = planner.estimate_memory("llama-2-7b", "rtx-4090-24gb").to_json()
    assert (document["fits"], document["max_micro_batch"]) == ("no", 0)
    assert (document["micro_batch_size"], document["accumulation"]) == (1, 128)
    assert document["model_state_bytes"] > document["capacity_bytes"]
    alone = {lever["name"]: lever for lever in document["levers"] if lever["goal"] is None}
    assert {"8-bit optimizer", "fused optimizer", "optimizer state in host memory"} <= set(alone)
    assert alone["QLoRA (adapters on a 4-bit base)"]["fits"] == "yes"
    assert alone["8-bit optimizer"]["fits"] == "no"
    goals = {lever["goal"]: lever for lever in document["levers"] if lever["goal"]}
    assert set(goals) == {"adapters, same GPUs", "all weights, more GPUs"}
    assert all(lever["fits"] == "yes" and lever["time_factor"] > 0 for lever in goals.values())
    assert goals["all weights, more GPUs"]["strategy"] == "fsdp"
    # What this step trades: its peak is in the optimizer, so recomputation costs time and saves nothing.
    assert document["checkpointing"]["memory_factor"] == pytest.approx(1.0, abs=0.02)
    assert document["checkpointing"]["time_factor"] > 1.1


def test_adapter_optimizer_offload_and_split_are_read_and_refused_by_name() -> None:
    ask = {"gpu": "rtx-4090-24gb", "batch_size": 1}
    qlora = planner.estimate_memory("llama-2-7b", adapter="qlora", **ask).to_json()
    lora = planner.estimate_memory("llama-2-7b", adapter="lora", **ask).to_json()
    assert qlora["process_bytes"]["p50"] < lora["process_bytes"]["p50"] < 24 * 2**30
    assert qlora["adapter"] == "lora-r16-q_proj+v_proj-fp32-nf4-dq"
    moved = planner.estimate_memory("llama-2-7b", offload="optimizer", **ask).to_json()
    assert moved["host_bytes"] == pytest.approx(4 * 6_738_415_616, rel=1e-3)  # two bf16 moments
    ranks = planner.estimate_memory("llama-2-7b", gpus=8, tensor_parallel=8, **ask).to_json()
    assert ranks["fits"] == "yes"
    assert ranks["breakdown"]["weights"] == pytest.approx(2 * 6_738_415_616 / 8, rel=1e-3)
    with pytest.raises(UsageError, match="resnet50 has no usual targets for lora"):
        planner.estimate_memory("resnet50", adapter="lora", gpu="rtx-4090-24gb")
    with pytest.raises(UsageError, match="one GPU and no offload"):
        planner.estimate_memory("bert-base", "rtx-4090-24gb", gpus=2, alloc_conf="expandable_segments:True")


def test_a_step_is_replayed_under_an_allocator_configuration() -> None:
    found = planner.estimate_memory("bert-base", "rtx-4090-24gb", alloc_conf="expandable_segments:True")
    assert found.replayed is not None
    assert found.replayed["runs"]
    assert found.replayed["allocated_bytes"] <= found.replayed["reserved_bytes"]
    assert found.replayed["reserved_bytes"] < found.room.reserved_bytes[0]


def test_throughput_of_an_instance_brings_its_gpus_and_link() -> None:
    found = planner.estimate_throughput("resnet50", "p4d.24xlarge")
    assert (found.gpus, found.speed.link) == (8, "nvswitch-a100")
    body = found.to_json()["throughput"]
    assert body["low"] < body["value"] < body["high"]
    assert sum(seconds for _, _, seconds in found.speed.breakdown) == pytest.approx(found.speed.step_seconds)


def test_more_gpus_than_the_instance_has_are_refused() -> None:
    with pytest.raises(UsageError, match=r"p4d\.24xlarge has 8"):
        planner.estimate_throughput("resnet50", "p4d.24xlarge", gpus=16)


def test_lists_hold_every_kind() -> None:
    assert {row["kind"] for row in planner.list_hardware().rows} == {"gpu", "instance", "rig"}
    assert {row["kind"] for row in planner.list_hardware("rig").rows} == {"rig"}
    assert any(row["id"] == "bert-base" for row in planner.list_workloads().rows)
    assert planner.show_hardware("RTX 4090").id == "rtx-4090-24gb"
    assert planner.show_workload("bert-base-uncased").id == "bert-base"


def test_importing_the_package_imports_nothing_else_of_it() -> None:
    code = "import sys, planner; print(sum(name.startswith('planner') for name in sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "1"


def test_planning_imports_no_heavy_library() -> None:
    code = (
        "import sys, planner; planner.optimize('bert-base', epochs=10);"
        "heavy = {'torch', 'transformers', 'scipy', 'pandas', 'matplotlib', 'boto3', 'google', 'pydantic'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    assert all(hasattr(planner, name) for name in planner.__all__)
    assert set(planner.__all__) <= set(dir(planner))
    with pytest.raises(AttributeError, match="optimise"):
        planner.optimise  # noqa: B018


def test_listing_prices_of_a_misspelt_item_names_the_nearest_instead_of_nothing() -> None:
    with pytest.raises(UsageError, match=r'item "p4d\.24xlrage"\. Did you mean "p4d\.24xlarge"'):
        planner.list_prices(item="p4d.24xlrage")
    assert planner.list_prices(item="p4d.24xlarge", region="eastus").rows == ()
    with pytest.raises(UsageError, match=r"only a package\.module:factory takes one"):
        planner.optimize("bert-base", input_shape="3x8x8")


def test_prices_before_any_was_observed_are_a_sentence_not_an_empty_table() -> None:
    with pytest.raises(NothingStored, match="no price had been observed by 1999-01-01"):
        planner.list_prices(as_of="1999-01-01")


def test_frames_without_pandas_name_the_extra(
    main_job: planner.Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"training-planner\[frames\]"):
        _ = main_job.pareto
