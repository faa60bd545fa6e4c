"""How several GPUs share one training step: the one list of strategies, for time and for memory alike.

ZeRO: Rajbhandari et al., arXiv 1910.02054. FSDP's full shard is ZeRO stage 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .errors import UnknownName


@dataclass(frozen=True, slots=True)
class Strategy:
    """How often what crosses a rank's link, each time (n-1)/n of it.

    gradients: times per optimizer step; gradients_each, parameters_each: times per micro-step, parameters in
    16 bits. zero_stage: 1 shards the optimizer's state and so the update, 2 the gradients, 3 the weights.
    """

    gradients: float
    gradients_each: float
    parameters_each: float
    zero_stage: int

    @property
    def shards_update(self) -> bool:
        """Whether each rank updates its share of the parameters alone."""
        return self.zero_stage >= 1


# ddp: one all-reduce, which is a reduce-scatter and an all-gather; skipped on all but the last micro-step.
# zero1: the same volume. zero2: gradients live sharded, so every micro-step reduces them; new weights are
# gathered once. fsdp, zero3: weights gathered in forward and in backward, gradients scattered, each time.
STRATEGIES: Mapping[str, Strategy] = {
    "ddp": Strategy(2.0, 0.0, 0.0, 0),
    "zero1": Strategy(2.0, 0.0, 0.0, 1),
    "zero2": Strategy(1.0, 1.0, 0.0, 2),
    "zero3": Strategy(0.0, 0.0, 3.0, 3),
    "fsdp": Strategy(0.0, 0.0, 3.0, 3),
}


def strategy(name: str) -> Strategy:
    """The strategy called `name`. Raises UnknownName, naming the nearest.

    >>> strategy("zero1").shards_update
    True
    """
    found = STRATEGIES.get(name)
    if found is None:
        raise UnknownName("strategy", name, STRATEGIES, f"Known: {', '.join(STRATEGIES)}")
    return found
