"""Log lines as JSON, one a line, with request ids and without secrets."""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime

# Passwords in addresses, and our own tokens, wherever they might have slipped into a message.
_SECRETS = re.compile(r"(?<=://)([^\s/:@]+):[^\s@]+@|plan_[\w-]{20,}")


def masked(text: str) -> str:
    """The text without what must not be read."""
    return _SECRETS.sub(lambda found: f"{found[1]}:***@" if found[1] else "plan_***", text)


class JsonLines(logging.Formatter):
    """time, level, logger, message, the request's fields and the traceback of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return masked(json.dumps(line, ensure_ascii=False, default=str))


def to_stderr() -> None:
    """Send every log line of this process to stderr as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "apscheduler"):
        logger = logging.getLogger(name)
        logger.handlers[:] = []
        logger.propagate = name != "uvicorn.access"
    logging.getLogger("apscheduler").setLevel(logging.WARNING)
