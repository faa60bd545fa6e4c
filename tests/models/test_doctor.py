"""The tables behind `planner doctor`: which torch runs on which card, and what to do where none does."""

from __future__ import annotations

import pytest

from planner.models import doctor
from planner.models.errors import UnknownName
from planner.models.hardware import catalogue


def said(diagnosis: doctor.Diagnosis, level: str) -> str:
    return " | ".join(f"{f.what} -> {f.do}" for f in diagnosis.findings if f.level == level)


def test_a_blackwell_card_needs_torch_2_7_built_for_cuda_12_8() -> None:
    found = doctor.diagnose_card("rtx-5090-32gb", "2.6")
    assert not found.healthy
    assert "install torch 2.7 or later from the CUDA 12.8 wheels" in said(found, "problem")
    assert doctor.diagnose_card("rtx-5090-32gb", "2.7").healthy


def test_a_volta_card_needs_the_older_cuda_of_a_new_torch() -> None:
    found = doctor.diagnose_card("v100-sxm2-16gb", "2.13")
    assert found.healthy
    assert "CUDA 12.6 wheel runs" in said(found, "ok")
    assert "CUDA 13.0 wheel installs but has no kernels" in said(found, "note")


def test_bf16_is_said_to_be_emulated_before_ampere_and_what_to_plan_instead() -> None:
    """C62-like pitfall: 10.3 TFLOPS in bf16 against 94.8 in fp16 on a V100."""
    notes = said(doctor.diagnose_card("v100-sxm2-16gb", "2.13"), "note")
    assert "bf16: emulated" in notes
    assert "plan fp16-amp instead" in notes
    assert "bf16" in said(doctor.diagnose_card("a100-sxm4-40gb", "2.13"), "ok")


def test_an_ada_card_runs_kernels_built_for_ampere() -> None:
    assert doctor.diagnose_card("rtx-4090-24gb", "2.0").healthy


def test_a_card_without_compute_capability_is_no_problem_and_says_why() -> None:
    found = doctor.diagnose_card("mi300x-192gb")
    assert found.healthy
    assert "ROCm" in said(found, "note")


@pytest.mark.parametrize("gpu", [gpu.id for gpu in catalogue.gpus() if gpu.compute_capability])
def test_every_card_of_the_catalogue_runs_on_some_torch_we_know(gpu: str) -> None:
    assert any(
        doctor.diagnose_card(gpu, f"{release[0]}.{release[1]}").healthy
        for release in {build.last for build in doctor.builds()}
    )


def test_every_build_and_driver_has_a_source_and_each_cuda_a_driver() -> None:
    for build in doctor.builds():
        assert build.source
        assert build.first <= build.last
        assert doctor.least_driver(build.cuda) is not None
        assert list(build.capabilities) == sorted(build.capabilities)


def test_versions_are_read_as_people_write_them() -> None:
    assert doctor.parse_version("2.10.0+cu128") == (2, 10)
    assert doctor.parse_version(" 2.9 ") == (2, 9)
    with pytest.raises(doctor.BadVersion, match="write it as"):
        doctor.parse_version("latest")


def test_a_torch_outside_the_table_is_said_not_judged() -> None:
    found = doctor.diagnose_card("rtx-4090-24gb", "1.2")
    assert found.healthy
    assert "holds no wheels of torch 1.2" in said(found, "note")


def test_an_unknown_card_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="rtx-4090"):
        doctor.diagnose_card("rtx-4900")


def test_an_old_driver_is_a_problem_with_two_ways_out() -> None:
    (finding,) = doctor.driver_findings("13.0", "550.54.15")
    assert finding.level == "problem"
    assert "580" in finding.do
    assert "older CUDA" in finding.do
    assert doctor.driver_findings("12.6", "550.54.15")[0].level == "ok"
    assert doctor.driver_findings("12.6", None) == []


def test_a_card_without_kernels_in_this_build_is_told_which_release_has_them() -> None:
    arches = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]
    assert doctor.arch_finding("RTX 4090", (8, 9), arches).level == "ok"
    found = doctor.arch_finding("V100", (7, 0), arches)
    assert found.level == "problem"
    assert "CUDA 12.6" in found.do


def test_this_machine_is_looked_at_without_torch_or_card_being_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "_installed", lambda _: None)
    monkeypatch.setattr(doctor, "nvidia_smi", lambda *_: {})
    found = doctor.diagnose_machine()
    assert found.healthy
    assert "pip install" in said(found, "note")
