"""Whether anything we install has a known vulnerability, and a bill of materials: `make audit`.

    python tools/audit.py [--sbom build/sbom.json] [--constraints constraints.txt]

Every package of constraints.txt is asked about at an advisory feed through pip-audit. A package that the feed
does not answer for, pip-audit calls "skipped" and passes; here that is a failure, and so is a package that is
installed without standing in constraints.txt. Exceptions stand in tools/audit_exceptions.toml, each with a
reason and a last day.

Exit codes: 0 every package was asked about and is clean; 1 a vulnerability, a skipped or an unpinned package;
3 no advisory feed could be reached, so nothing was found out.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXCEPTIONS = ROOT / "tools" / "audit_exceptions.toml"
FEEDS = ("pypi", "osv")
"""In the order they are asked: the second only where the first answers for nothing."""

CLEAN, FOUND, UNREACHED = 0, 1, 3

_OWN = frozenset({"training-planner", "pip", "setuptools"})
"""Installed without being depended on: ourselves, and what made the environment."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A vulnerability we live with: why, and until when."""

    id: str
    package: str
    reason: str
    until: date


@dataclass(frozen=True, slots=True)
class Verdict:
    """code: an exit code. lines: what to tell."""

    code: int
    lines: tuple[str, ...]


def judged(
    report: Mapping[str, Any] | None,
    pinned: Mapping[str, str],
    accepted: Sequence[Accepted] = (),
    *,
    today: date,
) -> Verdict:
    """What a pip-audit report amounts to. report: its JSON; None where it wrote none.

    pinned: name -> version that should have been asked about.
    """
    asked = {normal(each["name"]): each for each in (report or {}).get("dependencies", ())}
    skipped = {
        name: asked[name].get("skip_reason", "") if name in asked else "not asked about"
        for name in pinned
        if name not in asked or "skip_reason" in asked[name]
    }
    if len(skipped) == len(pinned):
        return Verdict(UNREACHED, (f"not one of {len(pinned)} packages was answered for",))
    lines = [f"skipped: {name} {pinned[name]}: {why}" for name, why in sorted(skipped.items())]
    tolerated = {(normal(one.package), one.id): one for one in accepted}
    used = set()
    for name, each in sorted(asked.items()):
        for vulnerability in each.get("vulns", ()):
            names = {vulnerability["id"], *vulnerability.get("aliases", ())}
            key = next((key for key in tolerated if key[0] == name and key[1] in names), None)
            if key is not None and tolerated[key].until >= today:
                used.add(key)
                continue
            over = "; its exception has run out" if key is not None else ""
            fixed = ", ".join(vulnerability.get("fix_versions", ())) or "no version"
            lines.append(
                f"vulnerable: {name} {each['version']}: {vulnerability['id']}, fixed in {fixed}{over}"
            )
    lines += [
        f"exception not needed any more: {package} {id}"
        for package, id in tolerated
        if (package, id) not in used
    ]
    return Verdict(FOUND if lines else CLEAN, tuple(lines))


def unpinned(installed: Iterable[tuple[str, str]], pinned: Mapping[str, str]) -> list[str]:
    """What is installed and could not have been asked about, since constraints.txt says something else.

    torch's local version (+cpu) counts as the version it is built from.
    """
    found = []
    for name, version in sorted(installed):
        wanted = pinned.get(normal(name))
        if normal(name) not in _OWN and wanted != version.split("+")[0]:
            found.append(f"installed as {version}, constraints.txt says {wanted or 'nothing'}: {name}")
    return found


def pins(text: str) -> dict[str, str]:
    """Name -> version of a constraints file. Raises ValueError for a line that pins nothing."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        written = line.partition("#")[0].strip()
        if not written:
            continue
        name, equals, version = written.partition("==")
        if not equals or not version:
            raise ValueError(f"constraints.txt, line {number}: {written}: not NAME==VERSION")
        found[normal(name)] = version.partition(";")[0].strip()
    return found


def exceptions(file: Path) -> tuple[Accepted, ...]:
    """The vulnerabilities we live with."""
    if not file.exists():
        return ()
    listed = tomllib.loads(file.read_text(encoding="utf-8")).get("exception", [])
    return tuple(Accepted(one["id"], one["package"], one["reason"], one["until"]) for one in listed)


def normal(name: str) -> str:
    """A package's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def asked(feed: str, constraints: Path) -> Mapping[str, Any] | None:
    """pip-audit's report from one feed; None where it could write none."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "report.json"
        command = [
            sys.executable, "-m", "pip_audit", "--requirement", str(constraints), "--disable-pip",
            "--no-deps", "--progress-spinner", "off", "--vulnerability-service", feed, "--format", "json",
            "--output", str(out),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
        if not out.exists() or not out.stat().st_size:
            last = done.stderr.strip().splitlines()[-1:] or ["no word"]
            print(f"pip-audit, feed {feed}: {last[0]}", file=sys.stderr)
            return None
        report: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return report


def bill_of_materials(out: Path) -> None:
    """What this environment is made of, as CycloneDX JSON; the same bytes for the same environment."""
    out.parent.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--of", "JSON",
        "-o", str(out), sys.executable,
    ]  # fmt: skip
    subprocess.run(command, check=True, timeout=300)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the bill of materials, ask the feeds, say what they said."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sbom", type=Path, default=ROOT / "build" / "sbom.json")
    parser.add_argument("--constraints", type=Path, default=ROOT / "constraints.txt")
    given = parser.parse_args(arguments)
    bill_of_materials(given.sbom)
    print(f"bill of materials: {given.sbom}")
    pinned = pins(given.constraints.read_text(encoding="utf-8"))
    loose = unpinned(((d.metadata["Name"], d.version) for d in distributions()), pinned)
    verdict = Verdict(UNREACHED, ())
    for feed in FEEDS:
        verdict = judged(
            asked(feed, given.constraints), pinned, exceptions(EXCEPTIONS), today=datetime.now(UTC).date()
        )
        if verdict.code != UNREACHED:
            break
    for line in (*loose, *verdict.lines):
        print(line)
    if verdict.code == UNREACHED:
        print(f"NOT AUDITED: no advisory feed could be reached from here ({', '.join(FEEDS)} were asked)")
        return UNREACHED
    if loose or verdict.code == FOUND:
        print("audit failed")
        return FOUND
    print(f"clean: each of {len(pinned)} packages was asked about, none has a known vulnerability")
    return CLEAN


if __name__ == "__main__":
    sys.exit(main())
