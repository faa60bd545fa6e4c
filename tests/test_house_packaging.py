"""What is installed: exact pins for everything, and a wheel that holds one package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonical(name): version for name, version in pairs}


def needed(name: str, extras: frozenset[str], seen: set[tuple[str, frozenset[str]]]) -> set[str]:
    """Distributions that `name[extras]` needs and that are installed here."""
    from packaging.requirements import Requirement

    if (canonical(name), extras) in seen:
        return set()
    seen.add((canonical(name), extras))
    try:
        requirements = metadata.distribution(name).requires or []
    except metadata.PackageNotFoundError:
        return set()
    found = {canonical(name)}
    for text in requirements:
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras or {""}):
            found |= needed(requirement.name, frozenset(requirement.extras), seen)
    return found


def test_everything_that_is_installed_for_development_is_pinned() -> None:
    wanted = needed("training-planner", frozenset({"dev"}), set()) - {"training-planner"}
    assert len(wanted) > 40
    # pip comes with Python and installs the others: it is not theirs to replace.
    assert wanted - {"pip"} - pins().keys() == set()


def test_constraints_are_exact_and_plain() -> None:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert pins()["torch"] == "2.13.0"
    assert not re.search(r"--hash|--index|--find-links|https?://|\+cpu", text)
    assert not {"torchvision", "timm"} & pins().keys()


def test_no_extra_brings_what_does_not_load_beside_our_torch() -> None:
    required = metadata.distribution("training-planner").requires or []
    assert not [text for text in required if re.match(r"(torchvision|timm)\b", text)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
    ]
    subprocess.run([*pip, str(ROOT)], check=True, timeout=300)
    return next(folder.glob("*.whl"))


@pytest.mark.slow
def test_the_wheel_holds_one_top_level_package_with_its_data(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"planner", "training_planner"}
    for needed_file in (
        "planner/models/hardware/data/sources.toml",
        "planner/models/workloads/data/bert-base.toml",
        "planner/pricing/data/snapshot.csv",
        "planner/pricing/errors.py",
    ):
        assert needed_file in names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


@pytest.mark.slow
def test_a_users_own_models_package_loads_beside_the_wheel(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    for name in ("models", "pricing"):
        (tmp_path / "mine" / name).mkdir(parents=True)
        (tmp_path / "mine" / name / "__init__.py").write_text("WHOSE = 'mine'\n")
    code = (
        "import models, pricing, planner, planner.models.errors as e, planner.pricing.errors as p\n"
        "print(models.WHOSE, pricing.WHOSE, planner.__file__, e.__name__, p.__name__)"
    )
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    said = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path / "mine",
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert said[:2] == ["mine", "mine"]
    assert said[2].startswith(str(tmp_path / "site"))
    assert said[3:] == ["planner.models.errors", "planner.pricing.errors"]


@pytest.mark.slow
def test_the_installed_wheel_answers_the_first_question(wheel: Path, tmp_path: Path) -> None:
    """From the wheel alone, in a folder that is not the checkout: data files and all."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    code = (
        "import planner; assert planner.__file__.startswith(%r); from planner.cli.entry import main; main()"
    )
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            code % str(tmp_path / "site"),
            "optimize",
            "--model",
            "bert-base",
            "--epochs",
            "10",
        ],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert said.returncode == 0, said.stderr
    assert "p4d.24xlarge" in said.stdout
    assert "rig-1x-rtx-4090" in said.stdout
