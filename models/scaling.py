"""Several GPUs: how long the exchange of gradients and parameters takes, and how much of it is felt.

A collective over n ranks moves `volume` bytes through each rank's link; link classes and their effective
bandwidths are in calibration/data/links.toml. What tensor and pipeline parallel steps add is in
model_parallel.py.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from . import strategies
from .errors import BadData, ModelsError, UnknownName

if TYPE_CHECKING:
    from .hardware.catalogue import Gpu


SHARDED_PARAMETER_BYTES = 2


class LinkMismatch(ModelsError):
    """A link or network that these GPUs do not have, or GPUs without a link between them."""


@dataclass(frozen=True, slots=True)
class Link:
    """One link class. bandwidth_bytes_per_second: effective, at two ranks. [B/s]  log_sd: natural log."""

    id: str
    bandwidth_bytes_per_second: float
    falls: float
    log_sd: float
    source: str
    note: str

    def bandwidth_at(self, ranks: int) -> float:
        """Effective bandwidth when `ranks` GPUs share it. [B/s]"""
        share: float = (2 / max(ranks, 2)) ** self.falls
        return self.bandwidth_bytes_per_second * share


@dataclass(frozen=True, slots=True)
class Exchange:
    """What one optimizer step exchanges. seconds: unhidden. [s]  bytes: through each rank's link. [B]"""

    bytes: float
    bandwidth_bytes_per_second: float
    seconds: float
    log_sd: float
    bottleneck: str


@cache
def links() -> Mapping[str, Link]:
    """All link classes by id. Raises BadData where the table is broken."""
    where = "calibration/data/links.toml"
    table = tomllib.loads(files(__package__).joinpath(where).read_text(encoding="utf-8"))
    try:
        return {
            name: Link(
                name,
                float(row["effective_gbytes_per_second"]) * 1e9,
                float(row.get("falls", 0.0)),
                float(row["log_sd"]),
                str(row["source"]),
                str(row.get("note", "")),
            )
            for name, row in table.items()
        }
    except KeyError as error:
        raise BadData(f"{where}: a link without {error}") from error


def link(name: str) -> Link:
    """The link class called `name`. Raises UnknownName."""
    found = links().get(name)
    if found is None:
        raise UnknownName("link class", name, links(), f"Known: {', '.join(links())}")
    return found


@dataclass(frozen=True, slots=True)
class Fabric:
    """Where ranks stand. per_node: GPUs of a machine; fitted: link class -> effective bandwidth. [B/s]"""

    per_node: int
    link: str
    network: str
    fitted: Mapping[str, float]

    @classmethod
    def of(
        cls,
        gpu_count: int,
        node_count: int,
        link_name: str,
        network_name: str,
        fitted: Mapping[str, float] | None = None,
    ) -> Fabric:
        """`gpu_count` GPUs over `node_count` machines. Raises LinkMismatch where they do not divide."""
        if gpu_count % node_count:
            raise LinkMismatch(f"{gpu_count} GPUs do not divide over {node_count} nodes")
        return cls(gpu_count // node_count, link_name, network_name, fitted or {})

    def ring(self, ranks: int, in_node: int) -> tuple[Link, float]:
        """(slowest leg, what each rank gets of it [B/s]) of rings of `ranks`, `in_node` of them in a machine.

        All GPUs of a machine talk at once, in several rings where each has few ranks there; they share its
        network. Raises UnknownName, and LinkMismatch where a leg is needed that is not there.
        """
        in_node = max(1, min(ranks, in_node))
        legs: list[tuple[Link, float]] = []
        if in_node > 1:
            if self.link == "none":
                raise LinkMismatch(f'{self.per_node} GPUs in a node need a link; got "none"')
            inside = _fitted(link(self.link), self.fitted)
            legs.append((inside, inside.bandwidth_at(self.per_node)))
        if ranks > in_node:
            if self.network == "none":
                raise LinkMismatch(f'{-(-ranks // in_node)} nodes need a network; got "none"')
            between = _fitted(link(self.network), self.fitted)
            legs.append((between, between.bandwidth_at(self.per_node) * in_node / self.per_node))
        return min(legs, key=lambda leg: leg[1])


def all_reduce_seconds(message_bytes: float, ranks: int, bandwidth_bytes_per_second: float) -> float:
    """A ring all-reduce: every rank sends and receives 2 (n-1)/n of the message. [s]

    >>> round(all_reduce_seconds(335_141_888 * 4, 4, 10e9), 3)
    0.201
    """
    return 2 * (ranks - 1) / ranks * message_bytes / bandwidth_bytes_per_second


def exposed_seconds(communication: float, step: float, hidden_by: float) -> float:
    """The part of `communication` that lengthens the step: c^2 / (c + a step). [s]

    hidden_by: a, how much of the step can hide it; 0 hides nothing. Never negative, never more than c.
    """
    total = communication + hidden_by * step
    return communication**2 / total if total > 0 else 0.0


def exchange(
    *,
    strategy: str,
    gradient_bytes: float,
    parameters: float,
    gpu_count: int,
    node_count: int,
    link_name: str,
    network_name: str,
    accumulation: int,
    fitted: Mapping[str, float] | None = None,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
) -> Exchange:
    """What replicas exchange in one optimizer step of `gpu_count` GPUs in all, over `node_count` nodes.

    gradient_bytes: of one replica. [B]  parameters: of the whole model. [1]
    fitted: link class -> effective bandwidth at two ranks in place of the table's. [B/s]
    tensor_parallel, pipeline_parallel: GPUs that hold one replica; each then exchanges its share of it.
    Raises UnknownName (strategy, link, network) and LinkMismatch (several GPUs, link "none").
    """
    plan = strategies.strategy(strategy)
    within = tensor_parallel * pipeline_parallel
    ranks = gpu_count // within
    if ranks == 1:
        return Exchange(0.0, float("inf"), 0.0, 0.0, "none")
    fabric = Fabric.of(gpu_count, node_count, link_name, network_name, fitted)
    gradients = (plan.gradients + plan.gradients_each * accumulation) * gradient_bytes
    weights = plan.parameters_each * accumulation * parameters * SHARDED_PARAMETER_BYTES
    volume = (ranks - 1) / ranks * (gradients + weights) / within
    slowest, bandwidth = fabric.ring(ranks, fabric.per_node // tensor_parallel)
    return Exchange(volume, bandwidth, volume / bandwidth, slowest.log_sd, slowest.id)


def shards_optimizer(strategy: str) -> bool:
    """Whether each rank updates only its share of the parameters. Raises UnknownName."""
    return strategies.strategy(strategy).shards_update


def check_link(gpu: Gpu, link_name: str) -> None:
    """Raises LinkMismatch where `link_name` is NVLink and the card has none (all RTX 40-series)."""
    if link_name.startswith("nv") and not gpu.nvlink:
        raise LinkMismatch(
            f'{gpu.id} has no NVLink, so link "{link_name}" cannot be; use "pcie4" or "pcie4-no-p2p"'
        )


def _fitted(found: Link, fitted: Mapping[str, float]) -> Link:
    return replace(found, bandwidth_bytes_per_second=fitted.get(found.id, found.bandwidth_bytes_per_second))
