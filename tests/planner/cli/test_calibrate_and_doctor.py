"""`planner calibrate` and `planner doctor` as they are typed, on a profile made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planner.models.calibration.device_profile import DeviceProfile, Point, Timing, read, write
from planner.models.microbenchmarks import replaying

Planner = Callable[..., Any]


def profile(seconds: float = 0.001) -> DeviceProfile:
    timing = Timing(seconds, seconds, seconds, 0.1, 9)
    shapes = ((64, 64), (64, 64))
    flops, read_bytes, written = 2.0 * 64**3, 32768.0, 16384.0
    point = Point("mm/a", "matmul", "mm", "gemm", "float32", "nn", shapes, flops, read_bytes, written, timing)
    step = {
        "name": "mlp/b4",
        "step_seconds": 0.5,
        "low_seconds": 0.4,
        "high_seconds": 0.6,
        "tier": "replay",
        "coverage": 0.97,
    }
    return DeviceProfile(
        device={"kind": "cpu", "name": "a CPU"},
        software={"torch": "2.13.0", "allocator": "pinned", "threads": 1},
        protocol={"clock": "process CPU time", "wall_seconds": 12.5, "rounds": 4},
        points=(point,),
        anchors=(step,),
        quality={"points": 1, "median_spread": 0.1, "warnings": ["the machine was busy"], "failed": {}},
    )


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Calibrations asked for; each is answered with the profile made by hand."""
    asked: list[dict[str, Any]] = []

    def calibrate_with(**how: Any) -> DeviceProfile:
        asked.append(how)
        return profile()

    monkeypatch.setattr(replaying, "calibrate_with", calibrate_with)
    return asked


def test_calibrate_shows_each_suite_the_step_and_what_to_doubt(
    planner: Planner, calls: list[dict[str, Any]]
) -> None:
    said = planner("calibrate", "--seconds", "30", "--replay", "mlp", "--batch", "4")
    assert said.code == 0
    assert "matmul" in said.out
    assert "mlp/b4: 0.5 s a step (0.4 to 0.6, tier replay" in said.out
    assert "the machine was busy" in said.out
    assert calls[0]["seconds"] == 30.0
    assert (calls[0]["replay"], calls[0]["batch"], calls[0]["size"]) == ("mlp", 4, None)


def test_calibrate_writes_a_profile_that_reads_back(
    planner: Planner, calls: list[dict[str, Any]], tmp_path: Path
) -> None:
    assert planner("calibrate", "-o", str(tmp_path / "here.json")).code == 0
    assert read(tmp_path / "here.json") == profile()


def test_calibrate_gives_the_raw_points_as_rows(planner: Planner, calls: list[dict[str, Any]]) -> None:
    said = planner("calibrate", "--format", "csv")
    assert said.out.splitlines()[0].startswith("key,suite,op,")
    assert said.out.splitlines()[1].startswith("mm/a,matmul,mm,")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--seconds", "soon"), "--seconds"),
        (("--seconds", "-1"), "--seconds"),
        (("--batch", "0"), "--batch"),
        (("--device", "tpu"), "tpu"),
    ],
)
def test_calibrate_refuses_nonsense_before_it_measures(
    planner: Planner, calls: list[dict[str, Any]], arguments: tuple[str, ...], named: str
) -> None:
    said = planner("calibrate", *arguments)
    assert said.code == 2
    assert named in said.err
    assert calls == []


def test_two_profiles_compare_on_the_command_line(planner: Planner, tmp_path: Path) -> None:
    write(profile(0.001), tmp_path / "a.json")
    write(profile(0.002), tmp_path / "b.json")
    said = planner("calibrate", "--compare", str(tmp_path / "a.json"), str(tmp_path / "b.json"))
    assert said.code == 0
    assert "2.00" in said.out
    missing = planner("calibrate", "--compare", str(tmp_path / "a.json"), str(tmp_path / "none.json"))
    assert missing.code == 5
    assert "none.json" in missing.err


def test_doctor_says_what_to_install_and_exits_with_three(planner: Planner) -> None:
    said = planner("doctor", "--gpu", "RTX 5090", "--torch", "2.6", "--format", "json")
    assert said.code == 3
    body = json.loads(said.out)
    assert body["healthy"] is False
    assert any("CUDA 12.8" in finding["do"] for finding in body["findings"])
    assert planner("doctor", "--gpu", "rtx-5090-32gb").code == 0


def test_doctor_refuses_a_torch_without_a_card_and_a_card_nobody_knows(planner: Planner) -> None:
    assert planner("doctor", "--torch", "2.6").code == 2
    unknown = planner("doctor", "--gpu", "rtx-4900")
    assert unknown.code == 2
    assert "rtx-4090" in unknown.err
