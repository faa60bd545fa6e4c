"""boto3 clients with our time-outs, and pages without end or repetition."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from . import Deadline, FetchContext
from .errors import BadAnswer, SourceFailed, SourceUnavailable

NEEDS = "AWS credentials: aws configure, AWS_PROFILE, environment variables or an instance role"
PACKAGE = "boto3: pip install 'training-planner[aws]'"
# A price service answers 100 rows a page; the largest region has about 110,000 compute products.
MOST_PAGES = 10_000
# boto counts the first try too. Standard mode backs off with jitter and keeps a shared retry quota. Three
# tries at 5 s + 30 s stay within the two minutes of a fetch when the service hangs.
_TRIES = 3

MakeClient = Callable[[str, str, FetchContext], Any]


def make_client(service: str, region: str, context: FetchContext) -> Any:
    """A client of the official library, on its own credential chain. Raises SourceUnavailable."""
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError:
        raise SourceUnavailable(PACKAGE) from None
    config = Config(
        connect_timeout=context.connect_seconds,
        read_timeout=context.read_seconds,
        retries={"mode": "standard", "total_max_attempts": _TRIES},
    )
    try:
        session = boto3.Session()
        if session.get_credentials() is None:
            raise SourceUnavailable(NEEDS)
        return session.client(service, region_name=region, config=config)  # type: ignore[call-overload]
    except BotoCoreError as error:
        raise SourceUnavailable(f"{NEEDS} ({type(error).__name__})") from None


def call(method: Callable[..., Mapping[str, Any]], what: str, **arguments: Any) -> dict[str, Any]:
    """One answer without its metadata. Raises SourceUnavailable for credentials, SourceFailed else.

    The message names the kind of error, never its text: that can quote a request with its signature.
    """
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

    try:
        answer = method(**arguments)
    except (NoCredentialsError, PartialCredentialsError):
        raise SourceUnavailable(NEEDS) from None
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", "unknown"))
        if code in _NOT_ALLOWED:
            raise SourceUnavailable(f"permission for {what} ({code})") from None
        raise SourceFailed(f"{what}: AWS answered {code}") from None
    except BotoCoreError as error:
        raise SourceFailed(f"{what}: {type(error).__name__}") from None
    return {name: value for name, value in answer.items() if name != "ResponseMetadata"}


def pages(
    method: Callable[..., Mapping[str, Any]], what: str, token: str, deadline: Deadline, **arguments: Any
) -> Iterator[dict[str, Any]]:
    """Answers until one has no token or an empty one.

    token: the name of the page token in question and answer.
    Raises SourceFailed at the deadline, and BadAnswer when a token comes again: services that repeat one do
    so for ever.
    """
    seen: set[str] = set()
    for _ in range(MOST_PAGES):
        deadline.check(what)
        answer = call(method, what, **arguments)
        yield answer
        following = answer.get(token)
        if not following:
            return
        if following in seen:
            raise BadAnswer(f"{what}: page {len(seen) + 1} names the page token of an earlier one; stopped")
        seen.add(following)
        arguments[token] = following
    raise BadAnswer(f"{what}: more than {MOST_PAGES:,} pages; stopped")


def to_bytes(answer: Mapping[str, Any]) -> bytes:
    """An answer of boto as JSON: what is kept as raw, hashed and parsed."""
    return json.dumps(answer, default=_plain, sort_keys=True).encode()


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    raise TypeError(f"{type(value).__name__} in an answer of AWS")


_NOT_ALLOWED = frozenset({
    "AccessDenied", "AccessDeniedException", "AuthFailure", "ExpiredToken", "ExpiredTokenException",
    "InvalidClientTokenId", "UnauthorizedOperation", "UnrecognizedClientException", "OptInRequired",
})  # fmt: skip
