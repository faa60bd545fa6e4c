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

    import atexit
    import contextlib
    import gc
    import os

    # A plan makes some 100,000 records that live until it is printed. Looking for cycles among them at
    # Python's own pace takes 0.12 of 1.04 s CPU; at this pace 0.03.
    gc.set_threshold(20_000, 50, 100)
    # A plan's arrays are small: numpy's BLAS would start a thread per core at import and let them spin, which
    # cost 0.2 of 0.9 s CPU on two cores. Whoever sets it keeps what they set.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A stream that the caller closed (>&-) is None in Python; what is said to nobody must still be said.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        from planner.cli.running import run

        code = run(arguments)
    except KeyboardInterrupt:  # while the command line itself was being imported
        code = 130
    with contextlib.suppress(OSError):  # where stdout takes nothing more, that has been said
        sys.stdout.flush()
        sys.stderr.flush()
    # What was registered for the end is done; taking the interpreter apart, 0.11 s of it, is not.
    atexit._run_exitfuncs()
    os._exit(code)
