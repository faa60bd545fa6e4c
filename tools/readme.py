"""Runs what README shows: `make readme` writes the outputs again, `--check` compares.

In a ```console block a line "$ command" is run in a folder and a home of its own; the lines under it are what
it prints (stdout, then stderr), "# exit 3" at its end is the code it must leave with. A command without lines
under it is only run. ```python blocks are run, and must not fail. Commands of make are only looked up.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

_CONSOLE = re.compile(r"(```console\n)(.*?)(```)", re.DOTALL)
_PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
_EXIT = re.compile(r"\s+# exit (\d+)$")


@dataclass(frozen=True)
class Shown:
    """A command as README shows it, with the output it promises (empty: none shown)."""

    line: str
    output: str

    @property
    def command(self) -> str:
        return _EXIT.sub("", self.line)

    @property
    def code(self) -> int:
        found = _EXIT.search(self.line)
        return int(found[1]) if found else 0


def shown(block: str) -> list[Shown]:
    """The commands of one console block."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    found = []
    for part in parts:
        line, _, output = part.partition("\n")
        while line.endswith("\\"):
            more, _, output = output.partition("\n")
            line = f"{line}\n{more}"
        found.append(Shown(line, output))
    return found


def run(command: str, folder: Path) -> tuple[int, str]:
    """Exit code and what a reader would see, in an 80-column log."""
    environ = {
        key: value for key, value in os.environ.items() if not key.startswith(("PLANNER_", "XDG_", "LC_"))
    }
    environ |= {"HOME": str(folder), "COLUMNS": "80", "NO_COLOR": "1", "LANG": "C.UTF-8"}
    environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}"
    child = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environ, capture_output=True, text=True, timeout=300
    )
    return child.returncode, child.stdout + child.stderr


def rewritten(readme: str, root: Path) -> tuple[str, list[str]]:
    """README with every shown output made again, and what was wrong with the commands."""
    complaints: list[str] = []
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def block(match: re.Match[str]) -> str:
            said = []
            for command in shown(match[2]):
                if command.command.startswith("make "):
                    target = command.command.split()[1]
                    if target not in targets:
                        complaints.append(f"there is no make target {target}")
                    said.append(f"$ {command.line}\n{command.output}")
                    continue
                if not command.command.startswith(("planner ", "cat ")):
                    said.append(f"$ {command.line}\n{command.output}")
                    continue
                code, output = run(command.command, folder)
                if code != command.code:
                    complaints.append(f"{command.command}: exit {code}, not {command.code}: {output[-300:]}")
                blank = "\n" if command.output.endswith("\n\n") else ""
                said.append(
                    f"$ {command.line}\n{output + blank if command.output.strip() else command.output}"
                )
            return f"{match[1]}{''.join(said)}{match[3]}"

        text = _CONSOLE.sub(block, readme)
        for code in _PYTHON.findall(readme):
            done, output = run(f"python - <<'CODE'\n{code}CODE", folder)
            if done != 0:
                complaints.append(f"python block fails: {output[-400:]}")
    return text, complaints


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("readme", type=Path)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 where README is not true"
    )
    arguments = parser.parse_args()
    before = arguments.readme.read_text(encoding="utf-8")
    after, complaints = rewritten(before, arguments.readme.resolve().parent)
    if arguments.check and after != before:
        import difflib

        difference = difflib.unified_diff(
            before.splitlines(), after.splitlines(), "README", "what is true", lineterm=""
        )
        complaints.append("\n".join(difference))
    elif after != before:
        arguments.readme.write_text(after, encoding="utf-8")
    print("\n".join(complaints) or "README is true", file=sys.stderr if complaints else sys.stdout)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
