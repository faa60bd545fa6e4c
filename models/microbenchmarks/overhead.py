"""What torch itself costs: dispatch of an op too small to take time, of a view, of modules under autograd."""

from __future__ import annotations

from collections.abc import Iterator

from .registry import Call, Case, Operands, Target, Work, suite

DISPATCH, VIEW, CHAIN = "dispatch", "view", "chain"
CHAIN_MODULES = 48
# Ops a Linear + ReLU pair runs: addmm, relu; backward threshold_backward, two mm, sum.
OPS_PER_PAIR = 6


@suite("overhead")
def overhead(target: Target) -> Iterator[Case]:
    yield _case(DISPATCH, _dispatch, 1, "device")
    yield _case(VIEW, _view, 1, "host")
    yield _case(CHAIN, _chain, CHAIN_MODULES * OPS_PER_PAIR, "host")


def _case(name: str, make: object, ops: int, clock: str) -> Case:
    work = Work(name, "overhead", ((1,),), 0.0, 0.0, 0.0, {"ops": float(ops)})
    return Case(f"overhead/{name}", "overhead", "float32", name, make, work, cold=False, clock=clock)  # type: ignore[arg-type]


def _dispatch(take: Operands) -> Call:
    x, y = take.floats(8), take.floats(8)
    return lambda: x + y


def _view(take: Operands) -> Call:
    x = take.floats(8, 8)
    return lambda: x.view(4, 16)


def _chain(take: Operands) -> Call:
    import torch

    pairs = [module for _ in range(CHAIN_MODULES) for module in (torch.nn.Linear(8, 8), torch.nn.ReLU())]
    model = torch.nn.Sequential(*pairs).to(take.device)
    x = take.floats(4, 8)

    def step() -> object:
        with torch.enable_grad():
            model.zero_grad(set_to_none=True)
            model(x).sum().backward()
        return None

    return step
