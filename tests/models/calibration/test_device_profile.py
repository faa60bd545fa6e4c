"""The profile file: whole, readable again, refused where it is something else; two of them compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.models.calibration.device_compare import compare
from planner.models.calibration.device_profile import (
    DeviceProfile,
    Point,
    Timing,
    from_json,
    read,
    to_json,
    write,
)
from planner.models.errors import BadData


def point(key: str, seconds: float, cold: float | None = None, suite: str = "matmul") -> Point:
    return Point(
        key=key,
        suite=suite,
        op="mm",
        op_class="gemm",
        dtype="float32",
        layout="nn",
        shapes=((2, 3), (3, 4)),
        flops=48.0,
        bytes_read=72.0,
        bytes_written=32.0,
        hot=Timing(seconds, seconds / 2, 2 * seconds, 0.5, 9),
        cold=None if cold is None else Timing(cold, cold, cold, 0.0, 3),
        extra={"tensors": 2.0},
    )


def profile(*points: Point, name: str = "a CPU", torch: str = "2.13.0") -> DeviceProfile:
    return DeviceProfile(
        device={"kind": "cpu", "name": name},
        software={"torch": torch, "threads": 1},
        protocol={"rounds": 3},
        points=points,
        fits={"linear": {}},
        anchors=({"name": "mlp"},),
        quality={"warnings": []},
        origin={"kind": "measured here"},
    )


def test_a_profile_comes_back_from_its_file_as_it_was(tmp_path: Path) -> None:
    there = profile(point("a", 0.001, 0.003), point("b", 2.0))
    write(there, tmp_path / "p.json")
    assert read(tmp_path / "p.json") == there
    assert [path.name for path in tmp_path.iterdir()] == ["p.json"]


def test_the_schema_version_stands_first() -> None:
    assert next(iter(to_json(profile()))) == "schema_version"


def test_a_point_lies_between_hot_and_cold() -> None:
    assert point("a", 0.001, 0.003).seconds == pytest.approx(0.002)
    assert point("a", 0.001).seconds == 0.001


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "plan"}, "not a device profile"),
        ({"schema_version": 99}, "calibrate again"),
        ({"points": [{"key": "a"}]}, "not a device profile"),
    ],
)
def test_what_is_no_profile_is_refused_with_its_name(change: dict[str, object], said: str) -> None:
    with pytest.raises(BadData, match=f"p.json.*{said}"):
        from_json({**to_json(profile(point("a", 1.0))), **change}, "p.json")


def test_a_missing_profile_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="planner calibrate -o"):
        read(tmp_path / "none.json")
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    with pytest.raises(BadData, match="not readable"):
        read(tmp_path / "broken.json")
    (tmp_path / "list.json").write_text(json.dumps([1]), encoding="utf-8")
    with pytest.raises(BadData, match="not a device profile"):
        read(tmp_path / "list.json")


def test_two_profiles_compare_by_the_points_they_share() -> None:
    first = profile(point("a", 1.0), point("b", 1.0), point("x", 1.0, suite="bmm"), point("only", 1.0))
    second = profile(
        point("a", 0.5), point("b", 2.0), point("x", 3.0, suite="bmm"), name="another", torch="2.10.0"
    )
    found = compare(first, second)
    ratios = {row.suite: row.ratio for row in found.suites}
    assert ratios["matmul"] == pytest.approx(1.0)
    assert ratios["bmm"] == pytest.approx(3.0)
    assert ratios["all"] == pytest.approx(3.0 ** (1 / 3))
    assert found.suites[-1].suite == "all"
    assert (found.only_first, found.only_second) == (1, 0)
    assert found.differing == ("device: a CPU / another", "torch: 2.13.0 / 2.10.0")


def test_a_profile_compared_with_itself_is_one() -> None:
    one = profile(point("a", 0.25))
    assert all(row.ratio == pytest.approx(1.0) for row in compare(one, one).suites)
