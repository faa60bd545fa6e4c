"""`planner doctor`: do card, driver, CUDA and torch fit together; which types are native; what to change.

diagnose_card("rtx-5090-32gb", "2.6")  from the tables, for a card that need not be here
diagnose_machine()                     this machine: its driver, its torch, its cards
"""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .errors import BadData, ModelsError
from .hardware import catalogue
from .microbenchmarks.environment import nvidia_smi

if TYPE_CHECKING:
    from .hardware.records import Gpu

TABLE = Path(__file__).with_name("torch_builds.toml")
Level = Literal["ok", "note", "problem"]
_WANTED_DTYPES = ("fp32", "tf32", "fp16", "bf16", "fp8")
Version = tuple[int, int]


class BadVersion(ModelsError):
    """A torch version that is no version."""


@dataclass(frozen=True, slots=True)
class TorchBuild:
    """One stock wheel. first, last: torch releases, both included. capabilities: kernels it holds."""

    first: Version
    last: Version
    cuda: str
    capabilities: tuple[Version, ...]
    source: str

    def runs(self, capability: Version) -> bool:
        """Whether a card of that compute capability finds kernels: same major version, minor not above."""
        return any(c[0] == capability[0] and c[1] <= capability[1] for c in self.capabilities)


@dataclass(frozen=True, slots=True)
class Finding:
    """level: "ok", "note" or "problem". do: what to change; empty where there is nothing to do."""

    level: Level
    what: str
    do: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was looked at and what was found, worst last read first by `healthy`."""

    subject: str
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        return all(finding.level != "problem" for finding in self.findings)


def parse_version(text: str) -> Version:
    """Major and minor of "2.10", "2.10.1" or "2.10.0+cu128". Raises BadVersion.

    >>> parse_version("2.10.0+cu128")
    (2, 10)
    """
    found = re.match(r"(\d+)\.(\d+)", text.strip())
    if found is None:
        raise BadVersion(f'"{text}" is no version; write it as 2.10 or 2.10.1')
    return int(found[1]), int(found[2])


@cache
def builds() -> tuple[TorchBuild, ...]:
    """The stock wheels we know. Raises BadData naming the file where it does not read."""
    sources = _table()["sources"]
    found = []
    for record in _table()["build"]:
        if record["source"] not in sources:
            raise BadData(f'{TABLE.name}: no source "{record["source"]}"')
        first, last = (parse_version(text) for text in record["torch"])
        capabilities = tuple(parse_version(text) for text in record["capabilities"])
        found.append(TorchBuild(first, last, record["cuda"], capabilities, record["source"]))
    return tuple(found)


def least_driver(cuda: str) -> int | None:
    """The oldest driver's major number for a CUDA release; None where the table does not say."""
    major = parse_version(cuda)[0]
    for record in _table()["driver"]:
        if record["cuda_major"] == major:
            return int(record["least_driver"])
    return None


@cache
def _table() -> Mapping[str, Any]:
    try:
        return tomllib.loads(TABLE.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise BadData(f"{TABLE}: not readable as TOML ({error})") from error


def diagnose_card(name: str, torch_version: str | None = None) -> Diagnosis:
    """A catalogue card against a torch release, from the tables alone. None: the newest release they hold.

    Raises UnknownName for a card nobody knows, BadVersion for a version that is none.
    """
    gpu = catalogue.gpu(name)
    newest = max(build.last for build in builds())
    version = newest if torch_version is None else parse_version(torch_version)
    subject = f"{gpu.name} with torch {_text(version)}"
    if gpu.compute_capability is None:
        finding = Finding("note", f"{gpu.id} has no compute capability: {gpu.vendor} cards run ROCm builds")
        return Diagnosis(subject, (finding, *_dtypes(gpu)))
    return Diagnosis(
        subject, (*_wheels(gpu.id, parse_version(gpu.compute_capability), version), *_dtypes(gpu))
    )


def _wheels(card: str, capability: Version, version: Version) -> list[Finding]:
    mine = [build for build in builds() if build.first <= version <= build.last]
    fitting = [build for build in mine if build.runs(capability)]
    about = f"{card} (compute capability {_text(capability)})"
    findings = []
    if not mine:
        known = f"{_text(min(b.first for b in builds()))} to {_text(max(b.last for b in builds()))}"
        return [Finding("note", f"the table holds no wheels of torch {_text(version)}; it knows {known}")]
    if not fitting:
        have = ", ".join(f"CUDA {build.cuda}" for build in mine)
        findings.append(
            Finding(
                "problem",
                f"no wheel of torch {_text(version)} ({have}) has kernels for {about}",
                _other_release(capability, version),
                mine[0].source,
            )
        )
    for build in fitting:
        driver = least_driver(build.cuda)
        needs = "" if driver is None else f", driver {driver} or later"
        findings.append(
            Finding("ok", f"the CUDA {build.cuda} wheel runs on {about}{needs}", "", build.source)
        )
    for build in mine:
        if fitting and build not in fitting:
            findings.append(
                Finding(
                    "note",
                    f"the CUDA {build.cuda} wheel installs but has no kernels for {about}",
                    f"choose the CUDA {fitting[0].cuda} wheel",
                    build.source,
                )
            )
    return findings


def _other_release(capability: Version, version: Version) -> str:
    able = [build for build in builds() if build.runs(capability)]
    if not able:
        return "no stock wheel we know runs on it; build torch from source"
    later = [build for build in able if build.first > version]
    build = min(later, key=lambda b: b.first) if later else max(able, key=lambda b: b.last)
    release = build.first if later else build.last
    word = "or later" if later else "or earlier"
    return f"install torch {_text(release)} {word} from the CUDA {build.cuda} wheels"


def _dtypes(gpu: Gpu) -> list[Finding]:
    native = [name for name in _WANTED_DTYPES if name in gpu.native_dtypes]
    findings = [Finding("ok", f"native: {', '.join(native)}")]
    for name in _WANTED_DTYPES:
        if name in native:
            continue
        figure = gpu.figures.get(f"{name}_dense_tflops")
        reason = figure.reason if figure is not None and figure.reason else "not native"
        do = "plan fp16-amp instead" if name == "bf16" and "fp16" in native else ""
        findings.append(Finding("note", f"{name}: {reason}", do))
    return findings


def diagnose_machine() -> Diagnosis:
    """This machine: torch, driver and each card. Reads only; a machine without a card is no problem."""
    torch_version = _installed("torch")
    driver = nvidia_smi("driver_version", "name").get("driver_version")
    findings = []
    if torch_version is None:
        findings.append(
            Finding(
                "note",
                "torch is not installed: planning needs none, tracing and calibrating do",
                "pip install 'training-planner[trace]'",
            )
        )
    if driver is None:
        findings.append(Finding("note", "no NVIDIA driver answers here (nvidia-smi)"))
    if torch_version is not None:
        findings += _torch_here(torch_version, driver)
    return Diagnosis("this machine", tuple(findings))


def _torch_here(version: str, driver: str | None) -> list[Finding]:
    import torch

    cuda = torch.version.cuda
    findings = [Finding("ok", f"torch {version}, built for {f'CUDA {cuda}' if cuda else 'the CPU alone'}")]
    if cuda is None and driver is not None:
        findings.append(
            Finding("problem", "a card is here, and torch has no CUDA", "install a CUDA wheel of torch")
        )
    if cuda is None:
        return findings
    findings += driver_findings(cuda, driver)
    if not torch.cuda.is_available():
        return findings
    arches = torch.cuda.get_arch_list()
    for index in range(torch.cuda.device_count()):
        name, capability = torch.cuda.get_device_name(index), torch.cuda.get_device_capability(index)
        findings.append(arch_finding(name, capability, arches))
    return findings


def driver_findings(cuda: str, driver: str | None) -> list[Finding]:
    """Whether the driver ("580.65.06") is new enough for the CUDA that torch was built with."""
    least = least_driver(cuda)
    if driver is None or least is None:
        return []
    if int(driver.split(".", 1)[0]) >= least:
        return [Finding("ok", f"driver {driver} runs CUDA {cuda}", "", "driver-table")]
    return [
        Finding(
            "problem",
            f"driver {driver} is too old for CUDA {cuda}",
            f"update the driver to {least} or later, or install a torch wheel of an older CUDA",
            "driver-table",
        )
    ]


def arch_finding(name: str, capability: Version, arches: list[str]) -> Finding:
    """Whether this build of torch ("sm_80", …) has kernels for a card."""
    held = [_arch(text) for text in arches if text.startswith("sm_")]
    build = TorchBuild((0, 0), (0, 0), "", tuple(held), "")
    about = f"{name} (compute capability {_text(capability)})"
    if build.runs(capability):
        return Finding("ok", f"{about} has kernels in this torch")
    any_release = max(build.last for build in builds())
    return Finding(
        "problem",
        f"{about} has no kernels in this torch ({', '.join(arches)})",
        _other_release(capability, any_release),
    )


def _arch(text: str) -> Version:
    digits = re.sub(r"\D", "", text)
    return int(digits[:-1]), int(digits[-1])


def _installed(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _text(version: Version) -> str:
    return f"{version[0]}.{version[1]}"
