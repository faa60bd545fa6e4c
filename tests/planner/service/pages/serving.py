"""Serves the pages on a free port of loopback and prints the port; runs as a process of its own.

python serving.py
"""

from __future__ import annotations

import socket

import uvicorn
from fastapi import FastAPI


def app() -> FastAPI:
    """The service's pages alone."""
    from planner.service.pages import router

    made = FastAPI(openapi_url=None)
    made.include_router(router)
    return made


if __name__ == "__main__":
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(64)
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app(), log_level="warning")).run(sockets=[listening])
