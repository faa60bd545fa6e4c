"""Where the `planner` command starts: the version at once, everything else through typer.

Asking for the version costs little more than starting Python, so nothing is imported before it is answered.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and leave with its exit code."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from planner.cli.version import VERSION

        print(f"planner {VERSION}")
        sys.exit(0)

    from planner.cli.running import run

    sys.exit(run(arguments))
