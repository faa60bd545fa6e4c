"""A PostgreSQL cluster of a test's own, from the machine's binaries, that may be stopped and killed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from waiting import until

_BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


class Cluster:
    """Makes a cluster in a folder of its own. Skips where that cannot be done."""

    def __init__(self) -> None:
        found = shutil.which("initdb")
        self.binaries = Path(found).parent if found else next(iter(_BINARIES), None)
        if self.binaries is None:
            pytest.skip("no initdb on this machine: PostgreSQL's server programs are not installed")
        self.folder = Path(tempfile.mkdtemp(prefix="planner-postgres-"))
        self.user = _unprivileged()
        if self.user:
            shutil.chown(self.folder, self.user)
        self.port = _free_port()
        self.server: subprocess.Popen[bytes] | None = None
        # Nothing is flushed to the disk: killed processes lose nothing by that, only a machine would.
        options = "--auth=trust", "--username=planner", "--encoding=UTF8", "--no-locale", "--no-sync"
        self._run("initdb", "-D", str(self.folder / "data"), *options)

    @property
    def url(self) -> str:
        return f"postgresql://planner@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Come up, after a kill with recovery; returns when it answers."""
        until(self._up, 60, "PostgreSQL answers")

    def stop(self) -> None:
        """As an administrator restarts it: sessions are ended at once."""
        if self.server is not None:
            self.server.send_signal(signal.SIGINT)
            self.server.wait(30)

    def kill(self) -> None:
        """As the kernel does when memory is short: no process of it gets to say goodbye."""
        assert self.server is not None
        children = Path(f"/proc/{self.server.pid}/task/{self.server.pid}/children")
        killed = [int(pid) for pid in children.read_text().split()]
        for pid in (self.server.pid, *killed):
            _kill(pid)
        self.server.wait(30)

    def remove(self) -> None:
        if self.server is not None and self.server.poll() is None:
            self.kill()
        shutil.rmtree(self.folder)

    def _up(self) -> bool:
        import psycopg

        if self.server is None or self.server.poll() is not None:
            # A backend of a killed one may hold its memory for a moment: the start fails and is repeated.
            self.server = subprocess.Popen(
                [str(self._binary("postgres")), "-D", str(self.folder / "data"), *self._settings()],
                stderr=(self.folder / "log").open("ab"),
                user=self.user,
            )
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _settings(self) -> list[str]:
        said = {"port": self.port, "listen_addresses": "127.0.0.1", "fsync": "off"}
        said |= {"unix_socket_directories": self.folder, "shared_buffers": "16MB"}
        return [text for name, value in said.items() for text in ("-c", f"{name}={value}")]

    def _binary(self, name: str) -> Path:
        assert self.binaries is not None
        return self.binaries / name

    def _run(self, name: str, *given: str) -> None:
        subprocess.run([str(self._binary(name)), *given], user=self.user, check=True, capture_output=True)


def _unprivileged() -> Any:
    """PostgreSQL refuses to run as root: another user then, else whoever we are (None)."""
    import pwd

    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    pytest.skip("PostgreSQL does not run as root, and there is no other user here")


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        return port


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it ended by itself meanwhile
