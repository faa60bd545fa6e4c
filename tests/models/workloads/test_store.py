"""Traces: those that ship are those the code makes today; those that do not are cached."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.models.errors import BadData, TraceUnavailable
from planner.models.tracing import step_trace
from planner.models.tracing.step_trace import TraceVariant
from planner.models.workloads import building, cache, make_traces, records, store, zoo
from planner.models.workloads.configs import from_config

EVERY = zoo.workloads()
SMALL = ("mlp-mnist", "resnet18")
LARGEST_SHIPPED_BYTES = 12_000_000

# All of it takes 20 minutes; each day's run takes the next twelfth. PLANNER_RETRACE_ALL=1 takes all.
SLICES = 12


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "traces"


@pytest.fixture
def own(tmp_path: Path) -> records.Workload:
    config = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_layer": 1,
        "n_embd": 32,
        "n_head": 2,
    }
    (tmp_path / "tiny.json").write_text(json.dumps({**config, "vocab_size": 50, "n_positions": 64}))
    return from_config(tmp_path / "tiny.json")


@pytest.mark.parametrize("workload", EVERY, ids=lambda w: w.id)
def test_every_variant_a_plan_asks_for_ships_with_its_trace_or_summary(workload: records.Workload) -> None:
    wanted = make_traces.variants_of(workload)
    assert set(store.shipped_variants(workload)) == set(wanted)
    for variant in wanted:
        path = store.shipped_path(workload.id, variant)
        assert path.is_file() == make_traces.ships_whole(workload, variant)
        summary = store.summary(workload, variant)
        assert (summary.workload, summary.variant) == (workload.id, variant)
        adapters = summary.trainable_parameters if variant.adapter else 0
        assert summary.parameters == workload.trained_parameters + adapters
        if path.is_file() and variant == wanted[0]:  # the rest is read in the slow test
            assert step_trace.read(path).content_hash == summary.trace_hash


def test_what_ships_is_small() -> None:
    total = sum(path.stat().st_size for path in store.SHIPPED.rglob("*") if path.is_file())
    assert total < LARGEST_SHIPPED_BYTES


@pytest.mark.parametrize("identifier", SMALL)
def test_shipped_traces_are_what_the_code_makes_today(identifier: str) -> None:
    workload = zoo.workload(identifier)
    assert make_traces.changed(workload, make_traces.variants_of(workload)) == [], "run: make traces"
    for variant in make_traces.variants_of(workload):
        if make_traces.ships_whole(workload, variant):
            whole = store.trace(workload, variant)
            assert whole.content_hash == store.summary(workload, variant).trace_hash


def _todays(workloads: tuple[records.Workload, ...]) -> tuple[records.Workload, ...]:
    if os.environ.get("PLANNER_RETRACE_ALL"):
        return workloads
    return workloads[datetime.datetime.now(datetime.UTC).toordinal() % SLICES :: SLICES]


@pytest.mark.slow
@pytest.mark.parametrize("workload", _todays(EVERY), ids=lambda w: w.id)
def test_shipped_traces_of_the_day_are_what_the_code_makes(workload: records.Workload) -> None:
    assert make_traces.changed(workload, make_traces.variants_of(workload)) == [], "run: make traces"


def test_a_shipped_summary_is_read_without_torch() -> None:
    program = (
        "import sys; from planner.models.workloads import zoo; "
        "from planner.models.tracing.step_trace import TraceVariant; "
        "s = zoo.summary(zoo.workload('bert-base'), TraceVariant('amp', 'flash')); "
        "print(s.parameters, sorted({'torch', 'transformers', 'numpy', 'tomllib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "108893186 []"


def test_choices_a_workload_does_not_have_are_replaced() -> None:
    asked = TraceVariant("amp", "flash", activation_checkpointing=True)
    assert store.variant_of(zoo.workload("resnet50"), asked).key == "amp-none-adamw-foreach-s224"
    assert store.variant_of(zoo.workload("gpt-neo-125m"), asked).attention_kernel == "math"
    assert store.variant_of(zoo.workload("bert-base"), asked).key == "amp-flash-ckpt-adamw-foreach-s384"


def test_a_trace_is_cached_and_a_broken_cache_file_is_made_again(cached: Path, own: records.Workload) -> None:
    variant = TraceVariant("amp", "flash", size=32)
    first = store.summary(own, variant)
    files = {path: path.read_bytes() for path in cached.iterdir()}
    assert len(files) == 3  # the configuration's count, the trace, its summary
    for broken in (b"", b"not gzip", b"\x1f\x8b\x08\x00 cut short"):
        for path in files:
            path.write_bytes(broken)
        assert store.summary(own, variant) == first
        assert {path: path.read_bytes() for path in files}.keys() == files.keys()
    assert not list(cached.glob("*.partial"))


def test_a_cache_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: records.Workload
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "file"))
    assert store.summary(own, TraceVariant("fp32", size=32)).parameters == own.parameters


def test_the_key_of_the_cache_follows_configuration_and_versions(
    own: records.Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cache.key(own, "trace-a")
    assert cache.key(own, "trace-b") != before
    assert cache.key(zoo.workload("gpt2"), "trace-a") != before
    monkeypatch.setattr(cache, "versions", lambda: {"torch": "9.9", "transformers": "9.9"})
    assert cache.key(own, "trace-a") != before


def test_without_torch_a_size_that_does_not_ship_says_what_to_install(
    cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "_TRACING_NEEDS", ("no_such_torch",))
    with pytest.raises(TraceUnavailable, match=r"tracing bert-base.*pip install 'training-planner\[trace\]'"):
        store.summary(zoo.workload("bert-base"), TraceVariant("amp", "flash", size=200))


def test_a_broken_shipped_file_is_named_with_its_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "SHIPPED", tmp_path)
    store._shipped_summaries.cache_clear()
    (tmp_path / "gpt2").mkdir()
    (tmp_path / "gpt2" / "summary.json").write_text("{")
    with pytest.raises(BadData, match=r"gpt2/summary.json: not readable as JSON .*make traces"):
        store.summary(zoo.workload("gpt2"), TraceVariant("amp", "flash"))
    store._shipped_summaries.cache_clear()
