"""The exact front against its definition."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from planner.optimizer.front import Point, dominates, pareto_front

# Few distinct values, so that ties in one or both coordinates are common.
VALUES = st.integers(0, 6).map(Decimal)
POINTS = st.lists(st.tuples(VALUES, VALUES), max_size=30).map(
    lambda raw: [Point(str(i), hours, cost) for i, (hours, cost) in enumerate(raw)]
)


@given(POINTS)
def test_the_front_is_what_nothing_dominates(points: list[Point]) -> None:
    by_definition = {p.id for p in points if not any(dominates(other, p) for other in points)}
    assert {name for name, by in pareto_front(points).items() if by is None} == by_definition


@given(POINTS)
def test_whoever_is_named_dominates_and_is_on_the_front(points: list[Point]) -> None:
    front = pareto_front(points)
    by_id = {p.id: p for p in points}
    for name, by in front.items():
        if by is not None:
            assert dominates(by_id[by], by_id[name])
            assert front[by] is None


@given(POINTS, st.randoms(use_true_random=False))
def test_input_order_does_not_matter(points: list[Point], shuffler: object) -> None:
    shuffled = list(points)
    shuffler.shuffle(shuffled)  # type: ignore[attr-defined]
    before = {name for name, by in pareto_front(points).items() if by is None}
    assert {name for name, by in pareto_front(shuffled).items() if by is None} == before


def test_points_equal_in_both_are_both_on_the_front() -> None:
    same = [Point("a", Decimal(1), Decimal(2)), Point("b", Decimal(1), Decimal("2.0"))]
    assert pareto_front(same) == {"a": None, "b": None}


def test_no_points_make_no_front() -> None:
    assert pareto_front([]) == {}
