"""Starts the server and ends it well."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from planner.errors import NothingStored, UsageError

if TYPE_CHECKING:
    from socket import socket

    from planner.service.access import Tokens
    from planner.service.settings import ServiceSettings
    from planner.service.state import State

# What is being answered gets so long after SIGTERM; workers give back what they hold meanwhile.
_GRACE_SECONDS = 10


def serve_until_told(settings: ServiceSettings) -> None:
    """Serve until SIGTERM or Ctrl-C. Raises UsageError where the service extra or the port is missing."""
    try:
        import uvicorn

        from planner.service.app import create_app
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the service needs {error.name}: pip install 'training-planner[service]'", "serve"
        ) from error
    from planner.pricing.errors import StoreUnusable
    from planner.service.logs import to_stderr

    listening = _socket(settings)
    try:
        app = create_app(settings)
    except StoreUnusable as error:
        raise NothingStored(str(error)) from error
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    print(f"http://{shown}:{port}/  (Ctrl-C ends it)", file=sys.stderr, flush=True)
    to_stderr()
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            limit_concurrency=None,
            # A proxy in front may say who asked only where it stands on this machine.
            proxy_headers=True,
            forwarded_allow_ips="127.0.0.1",
        )
    )
    server.run(sockets=[listening])


def _socket(settings: ServiceSettings) -> socket:
    from socket import AF_INET, AF_INET6, SO_REUSEADDR, SOL_SOCKET, socket

    listening = socket(AF_INET6 if ":" in settings.host else AF_INET)
    listening.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise UsageError(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror}; choose another --port",
            "port",
        ) from error
    listening.listen(512)
    return listening


@contextmanager
def opened() -> Iterator[tuple[State, Tokens]]:
    """The service's state and tokens, for commands beside the server. Raises NothingStored."""
    from planner import config
    from planner.pricing.errors import StoreUnusable
    from planner.service.access import Tokens
    from planner.service.state import State

    config.use_store()
    try:
        state = State.open()
    except StoreUnusable as error:
        raise NothingStored(str(error)) from error
    try:
        yield state, Tokens(state)
    finally:
        state.close()
