"""The sources' tables of instance types agree with the catalogue that speed and memory are computed from."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest

from planner.models.errors import UnknownName
from planner.models.hardware.catalogue import Instance, gpu, instance
from planner.pricing.sources.aws_shapes import known_gpus
from planner.pricing.sources.azure_rows import feed_names
from planner.pricing.sources.gcp_shapes import known_shapes


def rows() -> Iterator[tuple[str, str, int, int, str]]:
    """Name, GPU, number of GPUs, MiB per GPU and form of every type in the tables."""
    for name, aws in known_gpus().items():
        yield name, aws.model, aws.count, aws.memory_mib, aws.form
    for name, shape in known_shapes().items():
        yield name, shape.gpu, shape.gpus, shape.gpu_memory_mib, shape.form
    for size in feed_names().values():
        yield size.name, size.gpu, size.gpus, size.memory_mib, size.form


def catalogued(name: str) -> Instance | None:
    try:
        return instance(name)
    except UnknownName:
        return None


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: row[0])
def test_a_type_holds_the_gpus_that_the_catalogue_says(row: tuple[str, str, int, int, str]) -> None:
    name, model, count, memory_mib, form = row
    card = gpu(model)
    assert memory_mib * 2**20 == card.memory_bytes
    assert form == card.form_factor
    known = catalogued(name)
    if known is not None:
        assert (known.gpu, known.gpu_count) == (model, count)


@pytest.mark.parametrize("name", known_shapes())
def test_a_google_machine_is_made_of_what_the_catalogue_says(name: str) -> None:
    shape, known = known_shapes()[name], catalogued(name)
    if known is None:
        pytest.skip(f"{name} is not in the hardware catalogue")
    assert known.vcpus == shape.vcpus
    assert known.ram_gib is not None
    assert Decimal(str(known.ram_gib)) == shape.ram_gib
    assert known.local_ssd_gib == shape.ssd_gib
