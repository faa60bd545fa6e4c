"""A server that says exactly the given bytes to whoever connects, however broken they are."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest_socket


def half_body(body: bytes) -> bytes:
    """An answer that promises twice as much as it holds."""
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (2 * len(body), body)


@contextmanager
def serving(answer: bytes) -> Iterator[str]:
    """The address of a server that gives this answer and hangs up."""
    pytest_socket.enable_socket()
    pytest_socket.socket_allow_hosts(["127.0.0.1"], allow_unix_socket=True)
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                talking, _ = listening.accept()
            except OSError:
                return
            with talking:
                try:
                    talking.recv(65536)
                    talking.sendall(answer)
                except OSError:
                    continue

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/prices"
    finally:
        # Shut down before closing: closing alone leaves a thread in accept.
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        pytest_socket.disable_socket(allow_unix_socket=True)
