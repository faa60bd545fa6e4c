"""Every suite's cases: named once, counted by the tracer's rules, and none of them a workload's own shape."""

from __future__ import annotations

import pytest

from planner.models.errors import UnknownName
from planner.models.microbenchmarks import registry
from planner.models.microbenchmarks.registry import Target

pytest.importorskip("torch")

CPU = Target("cpu")


@pytest.fixture(scope="module")
def works() -> dict[str, registry.Work]:
    return {case.key: registry.work_of(case) for case in registry.cases(CPU)}


def test_each_case_is_one_op_whose_work_is_known(works: dict[str, registry.Work]) -> None:
    for key, work in works.items():
        assert work.flops or work.bytes_read or work.bytes_written or work.extra, key


def test_products_count_two_flops_a_multiply_add(works: dict[str, registry.Work]) -> None:
    assert works["addmm/nt/480x640x640/float32"].flops == 2 * 480 * 640 * 640
    assert works["bmm/nn/40x112x64x112/float32"].flops == 2 * 40 * 112 * 64 * 112


def test_an_embedding_reads_the_rows_it_touches_not_its_table(works: dict[str, registry.Work]) -> None:
    work = works["embedding/480x20000x640"]
    assert work.bytes_read == 480 * 640 * 4 + 480 * 8


def test_no_product_is_one_of_a_scored_workload() -> None:
    """The eight workloads of accuracy_cpu.py are built of these widths."""
    scored = {768, 2304, 3072, 50257, 784, 1200, 1500, 2048 * 3}
    for case in registry.cases(CPU, ("matmul", "bmm")):
        sides = {int(side) for side in case.key.split("/")[2].split("x")}
        assert not sides & scored, case.key


def test_a_card_gets_its_own_cases() -> None:
    card = registry.cases(Target("cuda", ("float32", "bfloat16"), scale=16, count=2))
    suites = {case.suite for case in card}
    assert {"host_to_device", "all_reduce"} <= suites
    assert any(case.layout == "channels_last" for case in card)
    assert {case.dtype for case in card if case.suite == "matmul"} == {"float32", "bfloat16"}
    assert not {"host_to_device", "all_reduce"} & {case.suite for case in registry.cases(CPU)}


def test_two_suites_of_one_name_are_refused() -> None:
    registry.cases(CPU, ("matmul",))
    with pytest.raises(ValueError, match="two suites"):
        registry.suite("matmul")(lambda target: iter(()))


def test_an_unknown_suite_is_named_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="matmul"):
        registry.cases(CPU, ("matmull",))
