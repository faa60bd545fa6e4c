"""A trace priced on a profile made by hand: sums add up, replayed rows count as measured, batches scale."""

from __future__ import annotations

import pytest

from planner.models.calibration import device_price as pricing
from planner.models.calibration.device_curves import fit
from planner.models.calibration.device_profile import DeviceProfile, Point, Timing
from planner.models.tracing.step_trace import Affine, OpRow, StepTrace, Storage, TraceVariant

pytest.importorskip("scipy")


def timed(key: str, op: str, op_class: str, seconds: float, **extra: object) -> Point:
    values: dict[str, object] = {
        "suite": "s", "dtype": "float32", "layout": "", "shapes": ((1,),), "flops": 0.0, "bytes_read": 0.0,
        "bytes_written": 0.0, **extra,
    }  # fmt: skip
    timing = Timing(seconds, seconds, seconds, 0.0, 3)
    return Point(key=key, op=op, op_class=op_class, hot=timing, **values)  # type: ignore[arg-type]


def products(layout: str, per_flop: float) -> list[Point]:
    return [
        timed(
            f"mm/{layout}/{n}", "mm", "gemm", per_flop * 2 * n**3,
            layout=layout, shapes=((n, n), (n, n)), flops=2.0 * n**3,
        )
        for n in (32, 64, 128, 256, 512)
    ]  # fmt: skip


def make_profile(kind: str = "cpu") -> DeviceProfile:
    points = [
        *products("nt", 1e-11),
        *products("nn", 2e-11),
        *products("tn", 4e-11),
        timed("relu/small", "relu", "elementwise", 1e-6, bytes_read=1e3),
        timed("relu/large", "relu", "elementwise", 1e-2, bytes_read=1e7),
        timed("d", "dispatch", "overhead", 1e-6, layout="dispatch", extra={"ops": 1.0}),
        timed("c", "chain", "overhead", 3e-6 * 100, layout="chain", extra={"ops": 100.0}),
        *(
            timed(
                f"o{elements}", "adamw-loop", "optimizer", 1e-9 * elements, layout="adamw-loop",
                extra={"tensors": 4.0, "elements": elements, "untouched_elements": 0.0},
            )
            for elements in (1e5, 1e6)
        ),
    ]  # fmt: skip
    return DeviceProfile({"kind": kind, "name": "x"}, {}, {}, tuple(points), fit(points))


def row(
    op: str, op_class: str, phase: str, shape: str, flops: Affine, written: Affine, count: int = 1
) -> OpRow:
    return OpRow(op, op_class, phase, count, flops, Affine(0, 2e4), written, shape, "")  # type: ignore[arg-type]


FORWARD = row("mm", "gemm", "forward", "64x256, 256x128", Affine(0, 2 * 16 * 256 * 128), Affine(0, 8192))
INPUT = row("mm", "gemm", "backward", "64x128, 128x256", Affine(0, 2 * 16 * 256 * 128), Affine(0, 16384))
WEIGHT = row("mm", "gemm", "backward", "256x64, 64x128", Affine(0, 2 * 16 * 256 * 128), Affine(131072, 0))
RELU = row("relu", "elementwise", "forward", "64x128", Affine(0, 0), Affine(0, 8192))


def make_trace() -> StepTrace:
    return StepTrace(
        workload="w",
        variant=TraceVariant(optimizer="none"),
        parameters=32768,
        trainable_parameters=32768,
        gradient_bytes=131072,
        batches=(2, 4),
        ops=(FORWARD, INPUT, WEIGHT, RELU),
        storages=(Storage(Affine(131072, 0), "gradients", "backward", "mm"),),
        initially_alive=0,
        events=(),
        marks=(),
        rewrites=(),
        notes=(),
    )


def test_the_parts_add_up_to_the_step() -> None:
    price = pricing.price_step(make_trace(), 4, make_profile(), optimizer="adamw-loop")
    assert sum(seconds for _, _, seconds in price.breakdown) == pytest.approx(price.step_seconds)
    assert price.low_seconds < price.step_seconds < price.high_seconds
    assert (price.tier, price.coverage, price.notes) == ("profile", 1.0, ())


def test_each_product_of_a_linear_layer_takes_the_curve_of_its_layout() -> None:
    assert [pricing.layout_of(r) for r in (FORWARD, INPUT, WEIGHT)] == ["nt", "nn", "tn"]
    price = pricing.price_step(make_trace(), 4, make_profile(), optimizer="none")
    seconds = {p.row: p.seconds for p in price.ops}
    flops = 2 * 64 * 256 * 128
    assert seconds[FORWARD] == pytest.approx(flops * 1e-11, rel=0.01)
    assert seconds[INPUT] == pytest.approx(flops * 2e-11, rel=0.01)
    assert seconds[WEIGHT] == pytest.approx(flops * 4e-11, rel=0.01)


def test_shapes_follow_the_batch_where_the_batch_stands() -> None:
    assert pricing.shapes_at(FORWARD, 8, 4) == ((128, 256), (256, 128))
    assert pricing.shapes_at(INPUT, 8, 4) == ((128, 128), (128, 256))
    assert pricing.shapes_at(WEIGHT, 8, 4) == ((256, 128), (128, 128))
    assert pricing.shapes_at(WEIGHT, 4, 4) == ((256, 64), (64, 128))


def test_a_larger_batch_is_never_cheaper() -> None:
    seconds = [
        pricing.price_step(make_trace(), batch, make_profile(), optimizer="adamw-loop").step_seconds
        for batch in (1, 2, 4, 8, 64)
    ]
    assert seconds == sorted(seconds)


def test_the_update_is_priced_by_its_elements() -> None:
    with_update = pricing.price_step(make_trace(), 4, make_profile(), optimizer="adamw-loop")
    without = pricing.price_step(make_trace(), 4, make_profile(), optimizer="none")
    assert with_update.step_seconds - without.step_seconds == pytest.approx(32768e-9, rel=1e-3)


def test_an_optimizer_nobody_measured_is_said_not_guessed() -> None:
    price = pricing.price_step(make_trace(), 4, make_profile(), optimizer="lion-loop")
    assert "lion-loop" in price.notes[0]


def test_a_replayed_row_takes_what_it_was_timed_at() -> None:
    price = pricing.price_step(make_trace(), 4, make_profile(), optimizer="none", replayed={FORWARD: 0.5})
    assert price.tier == "replay"
    assert {p.row: (p.seconds, p.how) for p in price.ops}[FORWARD] == (0.5, "replay")


def test_on_a_card_a_phase_takes_the_slower_of_host_and_device() -> None:
    """Launch-bound steps come out flat in the batch: three ops a phase at most, 3 us of host time each."""
    price = pricing.price_step(make_trace(), 1, make_profile("cuda"), optimizer="none")
    forward = sum(s for _, phase, s in price.breakdown if phase == "forward")
    device = sum(p.seconds for p in price.ops if p.row.phase == "forward")
    assert forward == pytest.approx(max(device, 2 * 3e-6))


def test_shape_texts_read_back_and_long_lists_end() -> None:
    assert pricing.shapes_in("4x512x768, 768, scalar, … 7 tensors") == ((4, 512, 768), (768,), ())
