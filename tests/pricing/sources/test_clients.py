"""The official clients as they are made: time-outs, endpoint, and what is said where one is missing."""

from __future__ import annotations

import sys

import pytest

from planner.pricing.sources import FetchContext, SourceUnavailable, find
from planner.pricing.sources.aws_client import make_client


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


@pytest.mark.usefixtures("credentials")
def test_c41_a_real_client_goes_to_the_endpoint_that_was_named_whatever_the_session_says() -> None:
    client = make_client("pricing", "eu-central-1", FetchContext())
    assert client.meta.endpoint_url == "https://api.pricing.eu-central-1.amazonaws.com"


@pytest.mark.usefixtures("credentials")
def test_a_client_that_hangs_is_given_up_within_the_time_of_a_fetch() -> None:
    context = FetchContext()
    config = make_client("ec2", "us-east-1", context).meta.config
    assert (config.connect_timeout, config.read_timeout) == (5, 30)
    assert config.retries["mode"] == "standard"
    worst = config.retries["total_max_attempts"] * (config.connect_timeout + config.read_timeout)
    assert worst < context.deadline_seconds


@pytest.mark.parametrize(
    ("source", "package", "extra"),
    [
        ("aws-price-list", "boto3", "aws"),
        ("aws-spot", "boto3", "aws"),
        ("gcp-catalog", "google.auth", "gcp"),
        ("azure-retail", "httpx2", "prices"),
        ("azure-retail", "tenacity", "prices"),
    ],
)
def test_a_package_that_is_missing_is_something_the_source_needs(
    source: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SourceUnavailable, match=rf"training-planner\[{extra}\]"):
        next(find(source).make().fetch(FetchContext()))


def test_a_profile_that_does_not_exist_is_something_the_source_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(SourceUnavailable, match="ProfileNotFound"):
        make_client("pricing", "us-east-1", FetchContext())
