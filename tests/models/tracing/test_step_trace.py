"""StepTrace as a file: same trace, same bytes; broken files are refused by name."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.models.errors import BadData
from planner.models.tracing import step_trace
from planner.models.tracing.step_trace import Affine, TraceVariant


def test_affine_sizes_add_and_scale() -> None:
    assert (Affine(1, 2) + Affine(10, 20)).at(3) == 11 + 22 * 3


@pytest.mark.parametrize(
    ("variant", "key"),
    [
        (TraceVariant(), "fp32-efficient-adamw-foreach"),
        (TraceVariant("amp", "flash", True, "adamw-fused", 384), "amp-flash-ckpt-adamw-fused-s384"),
    ],
)
def test_a_variant_has_a_name_for_its_file(variant: TraceVariant, key: str) -> None:
    assert variant.key == key


def test_a_trace_reads_back_as_it_was_written(lab: Any, tmp_path: Path) -> None:
    trace = lab.bert(64, TraceVariant("amp", "flash"), layers=2)
    path = tmp_path / "deep" / "trace.json.gz"
    step_trace.write(trace, path)
    assert step_trace.read(path) == trace
    first = path.read_bytes()
    step_trace.write(trace, path)
    assert path.read_bytes() == first
    assert not list(tmp_path.glob("**/*.partial"))


def test_the_hash_is_of_the_step_not_of_the_versions(lab: Any) -> None:
    trace = lab.bert(64, layers=2)
    assert replace(trace, versions={"torch": "0"}).content_hash == trace.content_hash
    assert replace(trace, gradient_bytes=1).content_hash != trace.content_hash


def test_broken_files_are_refused_by_name(lab: Any, tmp_path: Path) -> None:
    path = tmp_path / "broken.json.gz"
    path.write_bytes(b"not gzip")
    with pytest.raises(BadData, match=r"broken\.json\.gz: not readable"):
        step_trace.read(path)
    body = step_trace.to_json(lab.bert(64, layers=2))
    path.write_bytes(gzip.compress(json.dumps({**body, "schema_version": 99}).encode()))
    with pytest.raises(BadData, match="schema_version 99"):
        step_trace.read(path)
    del body["events"]
    path.write_bytes(gzip.compress(json.dumps(body).encode()))
    with pytest.raises(BadData, match=r"not a step trace .*events"):
        step_trace.read(path)
