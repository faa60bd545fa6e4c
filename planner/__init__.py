"""Cost and capacity planner for PyTorch training.

    import planner
    plan = planner.optimize("bert-base", epochs=10)
    plan.pareto                       # frame: option, cost_usd_p50, time_hours_p50, …
    plan.explain("rig-8x-rtx-4090")   # every term, its unit, its source

Nothing is imported until it is used, so that `import planner` costs next to nothing.
"""

from __future__ import annotations

# Not typing's: importing it takes longer than `planner --version` may. Type checkers know the name.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from .api import (
        breakeven,
        estimate_memory,
        estimate_throughput,
        explain_plan,
        list_hardware,
        list_prices,
        list_workloads,
        optimize,
        optimize_schedule,
        show_hardware,
        show_workload,
        validate_decisions,
    )
    from .errors import Infeasible, NoPrice, PlannerError, UsageError
    from .plan import Plan
    from .request import OptimizeRequest

# Public name -> module that defines it; the one list, also behind __all__ and dir().
_HOME = {
    "optimize": "api",
    "optimize_schedule": "api",
    "explain_plan": "api",
    "breakeven": "api",
    "estimate_memory": "api",
    "estimate_throughput": "api",
    "list_prices": "api",
    "list_hardware": "api",
    "list_workloads": "api",
    "show_hardware": "api",
    "show_workload": "api",
    "validate_decisions": "api",
    "OptimizeRequest": "request",
    "Plan": "plan",
    "PlannerError": "errors",
    "UsageError": "errors",
    "Infeasible": "errors",
    "NoPrice": "errors",
}

__all__ = [
    "Infeasible",
    "NoPrice",
    "OptimizeRequest",
    "Plan",
    "PlannerError",
    "UsageError",
    "breakeven",
    "estimate_memory",
    "estimate_throughput",
    "explain_plan",
    "list_hardware",
    "list_prices",
    "list_workloads",
    "optimize",
    "optimize_schedule",
    "show_hardware",
    "show_workload",
    "validate_decisions",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'planner' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{home}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
