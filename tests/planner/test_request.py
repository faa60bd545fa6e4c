"""A request is checked key by key; a value that cannot be meant is refused with its key."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from planner.errors import UsageError
from planner.request import CONVERT, OptimizeRequest, number, request_keys


def of(**values: Any) -> OptimizeRequest:
    return OptimizeRequest.of(**{"model": "bert-base"} | values)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("epochs", float("nan"), "epochs = nan: must be a finite number"),
        ("epochs", 1e12, "epochs = 1000000000000.0: must lie between"),
        ("epochs", -3, "epochs = -3: must lie between"),
        ("epochs", True, "epochs = True: must be a number"),
        ("epochs", "ten", "epochs = ten: must be a number"),
        ("tokens", "1.5", "tokens = 1.5: must be a whole number"),
        ("dataset_samples", 0, "dataset_samples = 0: must lie between"),
        ("batch_size", 10**9, "batch_size = 1000000000: must lie between"),
        ("seq_len", "inf", "seq_len = inf: must be a finite number"),
        ("pue", 0.9, "pue = 0.9: must lie between 1 and 5"),
        ("utilization", 0, "utilization = 0: must lie between"),
        ("utilization", 1.01, "utilization = 1.01: must lie between"),
        ("budget", "-1", "budget = -1: must lie between"),
        ("electricity_price", "-0.1", "electricity_price = -0.1: must lie between"),
        ("confidence", 100, "confidence = 100: must lie between 50 and 99.9"),
        ("horizon", "2 fortnights", "horizon = 2 fortnights: must be whole months"),
        ("horizon", 0, "horizon = 0: must lie between 1 and 120 months"),
        ("deadline", "soon", "deadline = soon: must be a span"),
        ("deadline", "0h", "deadline = 0h: must be"),
        ("deadline", "2026-12-24T18:00:00", "deadline = 2026-12-24T18:00:00: must be a span"),
        ("as_of", "2026-13-01", "as_of = 2026-13-01: must be a date"),
        ("as_of", "2026-06-01T10:00:00", "needs a time zone"),
        ("seed", -1, "seed = -1: must lie between"),
        ("max_gpus", 0, "max_gpus = 0: must lie between"),
        ("currency", "euro", "currency = euro: must be a three-letter"),
        ("fx", ["CNY"], '"CNY" is not KEY=NUMBER'),
        ("fx", {"CNY": 0}, "the rate of CNY must be above 0"),
        ("fx", {"CNY": "nan"}, "must be a finite number"),
        ("spot", "perhaps", "spot = perhaps: must be true or false"),
        ("gpu", ["", "T4"], "must be names"),
        ("model", " ", "must be a name"),
        ("max_price_age", "yesterday", "max_price_age = yesterday: must be a span"),
        ("precision", "bf17", 'no precision "bf17". Did you mean "bf16"?'),
        ("precision", "fp8", 'precision "fp8" is not covered'),
    ],
)
def test_a_value_nobody_can_mean_is_refused_with_its_key(key: str, value: Any, said: str) -> None:
    with pytest.raises(UsageError) as error:
        of(**{key: value})
    assert said in str(error.value)
    assert error.value.key == key
    assert error.value.exit_code == 2


def test_every_wrong_key_is_named_at_once() -> None:
    with pytest.raises(UsageError) as error:
        of(pue=0, epochs="x")
    assert [line.split(" = ")[0] for line in str(error.value).splitlines()] == ["epochs", "pue"]


def test_a_misspelt_key_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r'no key "epoch"\. Did you mean "epochs"\?'):
        of(epoch=3)


def test_a_request_without_a_model_is_refused() -> None:
    with pytest.raises(UsageError, match="model"):
        OptimizeRequest.of(model=None)


def test_epochs_and_tokens_together_are_refused() -> None:
    with pytest.raises(UsageError, match="epochs or tokens"):
        of(epochs=1, tokens=1000)


def test_none_always_means_the_default() -> None:
    assert of(**{key: None for key in request_keys() if key != "model"}) == of()


def test_every_key_has_a_reader() -> None:
    assert tuple(CONVERT) == request_keys()


def test_texts_numbers_and_lists_are_read_as_meant() -> None:
    asked = of(
        epochs="10",
        deadline="3d",
        horizon="2y",
        own="rig-1x-rtx-4090,mine.toml",
        fx=["cny=0.14"],
        as_of="2025-05-31",
        max_price_age="30d",
        tokens=None,
        assume={"own_pue": 1},
    )
    assert asked.epochs == Decimal(10)
    assert asked.deadline == Decimal(72)
    assert asked.horizon == 24
    assert asked.own == ("rig-1x-rtx-4090", "mine.toml")
    assert asked.fx == {"CNY": Decimal("0.14")}
    assert asked.as_of == datetime(2025, 5, 31, 23, 59, 59, tzinfo=UTC)
    assert asked.max_price_age == Decimal(720)
    assert asked.assume == {"own_pue": Decimal(1)}


def test_a_deadline_may_be_an_instant_and_must_lie_ahead() -> None:
    asked = of(deadline="2026-12-02T12:00:00+01:00")
    assert asked.deadline_hours(datetime(2026, 12, 2, 5, tzinfo=UTC)) == Decimal(6)
    with pytest.raises(UsageError, match="has passed"):
        asked.deadline_hours(datetime(2026, 12, 3, tzinfo=UTC))


def test_a_request_made_of_a_request_is_the_same() -> None:
    asked = of(deadline="90m", max_price_age="2w", horizon=6, fx={"EUR": "1.1"})
    assert OptimizeRequest.of(**{key: getattr(asked, key) for key in request_keys()}) == asked


@pytest.mark.parametrize("value", ["1e999999999", "1e300", "-1e999999999"])
def test_a_number_past_any_meaning_is_refused_before_it_is_printed(value: str) -> None:
    with pytest.raises(ValueError, match="far too large"):
        number(value)


def test_numbers_keep_eighteen_decimals_so_that_sums_stay_exact() -> None:
    assert number("0.3333333333333333333333333333") == Decimal("0.333333333333333333")
    assert number("1e-308") == 0
    assert number(0.1 + 0.2) == Decimal("0.30000000000000004")


@pytest.mark.parametrize("key", ["gpu", "own", "fx", "assume"])
def test_a_bare_number_is_no_list(key: str) -> None:
    with pytest.raises(UsageError, match=f"{key} = 3: must be"):
        OptimizeRequest.of(model="m", **{key: 3})


def test_a_list_is_quoted_as_it_was_typed() -> None:
    with pytest.raises(UsageError, match="precision = fp32, fp8: precision"):
        OptimizeRequest.of(model="m", precision=["fp32", "fp8"])
