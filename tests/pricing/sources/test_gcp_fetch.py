"""Fetching from Google with the official clients, each replaced by one that answers from a list."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from gcp_fakes import A100, CORE, NOW, RAM, machine, one

from planner.pricing.sources import FetchContext, SourceFailed, SourceUnavailable
from planner.pricing.sources.gcp_catalog import GcpCatalog, catalog_pages, machine_pages


def test_pages_of_machines_come_before_pages_of_skus_and_say_what_was_asked() -> None:
    def catalog(_: FetchContext) -> Iterator[dict[str, Any]]:
        yield {"skus": [CORE, RAM]}
        yield {"skus": [A100]}

    def machine_types(_: FetchContext) -> Iterator[dict[str, Any]]:
        yield {"items": [machine("a2-highgpu-1g")]}

    source = GcpCatalog(catalog, machine_types)
    pages = list(source.fetch(FetchContext(regions=("us-central1",))))
    assert len(pages) == 3
    assert [offer.item for offer in source.parse(pages, fetched_at=NOW).offers] == ["a2-highgpu-1g"]


def test_prices_come_without_machine_types_where_those_may_not_be_read() -> None:
    def fails(_: FetchContext) -> Iterator[dict[str, Any]]:
        raise SourceFailed("compute machineTypes: Forbidden")

    source = GcpCatalog(lambda _: iter([{"skus": [CORE, RAM, A100]}]), fails)
    assert len(source.parse(source.fetch(FetchContext()), fetched_at=NOW).offers) > 0


def test_pages_of_the_official_client_are_read_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    from google.cloud import billing_v1

    class Client:
        def list_skus(self, *, request: Any, timeout: float) -> Any:
            assert request.parent == "services/6F81-5844-456A"
            assert timeout == 30
            return self

        @property
        def pages(self) -> Iterator[Any]:
            for row in (CORE, RAM, A100):
                yield billing_v1.ListSkusResponse(skus=[billing_v1.Sku.from_json(json.dumps(row))])

    monkeypatch.setattr(billing_v1, "CloudCatalogClient", Client)
    source = GcpCatalog(machines=lambda _: iter(()))
    result = source.parse(source.fetch(FetchContext()), fetched_at=NOW)
    assert one(result, "a2-highgpu-1g").amount == Decimal("3.673385")


def test_without_credentials_the_source_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    from google.auth.exceptions import DefaultCredentialsError
    from google.cloud import billing_v1

    def refuses() -> None:
        raise DefaultCredentialsError("no credentials")

    monkeypatch.setattr(billing_v1, "CloudCatalogClient", refuses)
    with pytest.raises(SourceUnavailable, match="gcloud auth application-default login"):
        next(catalog_pages(FetchContext()))


def test_a_refusal_of_google_is_a_failure_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    from google.api_core.exceptions import ServiceUnavailable
    from google.cloud import billing_v1

    class Client:
        def list_skus(self, **_: Any) -> None:
            raise ServiceUnavailable("try later")

    monkeypatch.setattr(billing_v1, "CloudCatalogClient", Client)
    with pytest.raises(SourceFailed, match="ServiceUnavailable"):
        next(catalog_pages(FetchContext()))


def _machines_fail(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Signed in with a project, and the list of machine types fails."""

    class Client:
        def aggregated_list(self, **_: Any) -> None:
            raise error

    library = SimpleNamespace(MachineTypesClient=Client, AggregatedListMachineTypesRequest=SimpleNamespace)
    monkeypatch.setattr("planner.pricing.sources.gcp_catalog._compute", lambda: library)
    monkeypatch.setattr("google.auth.default", lambda: (None, "a-project"))


def test_a_refusal_of_machine_types_is_a_failure_and_an_expired_login_is_something_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import requests
    from google.api_core.exceptions import Forbidden
    from google.auth.exceptions import RefreshError

    for failure in (Forbidden("no"), requests.ConnectionError("no route")):
        _machines_fail(monkeypatch, failure)
        with pytest.raises(SourceFailed, match=type(failure).__name__):
            next(machine_pages(FetchContext()))
    _machines_fail(monkeypatch, RefreshError("expired"))
    with pytest.raises(SourceUnavailable, match="RefreshError"):
        next(machine_pages(FetchContext()))


def test_without_a_project_machine_types_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("google.auth.default", lambda: (None, None))
    assert list(machine_pages(FetchContext())) == []
