"""Tensor and pipeline parallel steps of language models: what each GPU computes, sends and waits for.

A replica is t x p GPUs: t share every layer (Megatron-LM, Shoeybi et al., arXiv 1909.08053), p hold layers
one after the other and pass m micro-batches on (1F1B, Narayanan et al., arXiv 2104.04473):

    compute   = micro-step at 1/t of its products x (1 + (m - 1) b),  b the busiest stage's share of layers
    all-reduces of activations, two a layer forward and two backward, two more where it is computed again
    hops of activations from stage to stage, forward and back

Ranks are placed as Megatron-LM does: tensor first, then data, then pipeline. Leaves out what narrower
products lose on small models, sequence parallelism, and interleaved schedules, which shrink the bubble.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from .errors import ModelsError
from .scaling import Fabric, Link

# A collective of small messages takes some 20 us over NVLink, however little it sends. Ours, from NCCL's
# usual latencies; it decides only where batches are tiny.
COLLECTIVE_SECONDS = 20e-6
# Under tensor parallelism norms and the residual stream's dropouts and additions are computed by every rank
# whole; the inner width's activation and the casts of weights are shared. Half and half, for elementwise.
WHOLE_CLASSES = frozenset({"norm"})
ELEMENTWISE_SHARED = 0.5


class CannotSplit(ModelsError):
    """A model or a number of GPUs that cannot be split this way; says what can."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The repeated blocks of a language model. tokens: of a sample; heads, vocabulary: None if not known.

    predicts_tokens: its output is one logit for each word of the vocabulary and each token.
    """

    layers: int
    width: int
    tokens: int
    heads: int | None = None
    vocabulary: int | None = None
    predicts_tokens: bool = True


@dataclass(frozen=True, slots=True)
class Split:
    """t x p GPUs to a replica; 1 x 1 is no split. blocks: None where the model has none to split."""

    tensor: int = 1
    pipeline: int = 1
    blocks: Blocks | None = None

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.tensor * self.pipeline

    def checked(self, gpu_count: int, workload: str) -> Split:
        """Itself, once it can be. Raises CannotSplit, and ValueError for counts below one."""
        if self.tensor < 1 or self.pipeline < 1:
            raise ValueError("tensor_parallel and pipeline_parallel must be at least 1")
        if self.gpus == 1:
            return self
        if self.blocks is None:
            raise CannotSplit(
                f"{workload} is no language model of one stack of layers, so tensor and pipeline parallel "
                "steps of it are not priced; use ddp or fsdp"
            )
        if gpu_count % self.gpus:
            raise CannotSplit(
                f"{gpu_count} GPUs do not divide into replicas of {self.gpus} "
                f"({self.tensor} tensor x {self.pipeline} pipeline parallel)"
            )
        if self.blocks.heads is not None and self.blocks.heads % self.tensor:
            raise CannotSplit(
                f"{workload} has {self.blocks.heads} attention heads, which do not divide over "
                f"{self.tensor} GPUs"
            )
        if self.pipeline > self.blocks.layers:
            raise CannotSplit(
                f"{workload} has {self.blocks.layers} layers, too few for {self.pipeline} stages"
            )
        return self

    def share_of(self, op_class: str) -> float:
        """The part of a class's work that one of the tensor-parallel GPUs does."""
        if self.tensor == 1 or op_class in WHOLE_CLASSES:
            return 1.0
        shared = ELEMENTWISE_SHARED if op_class == "elementwise" else 1.0
        return 1.0 - shared + shared / self.tensor

    def busiest(self, parameters: float) -> float:
        """The busiest stage's share of the layers' work: 1/p, or more where layers or the head are uneven.

        The output head stands on the last stage, which takes the fewer layers where they do not divide.
        """
        if self.pipeline == 1 or self.blocks is None:
            return 1.0
        layers, stages = self.blocks.layers, self.pipeline
        table = float(self.blocks.vocabulary or 0) * self.blocks.width
        head = min(table / max(parameters - table, 1.0) * layers, float(layers))  # in layers
        most = max(float(ceil(layers / stages)), layers // stages + head)
        return min(1.0, most / (layers + head))

    def micro_steps(self, accumulation: int, parameters: float) -> float:
        """How many whole micro-steps the pipeline's slowest path is long."""
        return 1.0 + (accumulation - 1) * self.busiest(parameters)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a split sends in one optimizer step. seconds: none of it hidden. [s]  bytes: of each rank. [B]"""

    seconds: float
    bytes: float
    log_sd: float
    over: str


def traffic(
    split: Split,
    fabric: Fabric,
    *,
    micro_batch: int,
    accumulation: int,
    replicas: int,
    compute_bytes: int,
    parameters: float,
    recomputes: bool,
) -> Traffic:
    """All-reduces inside layers and hops between stages of one optimizer step.

    compute_bytes: of one activation. [B]  recomputes: activation checkpointing.
    """
    if split.gpus == 1 or split.blocks is None:
        return Traffic(0.0, 0.0, 0.0, "none")
    message = float(micro_batch * split.blocks.tokens * split.blocks.width * compute_bytes)
    legs: list[Link] = []
    seconds = sent = 0.0
    if split.tensor > 1:
        reductions = (6 if recomputes else 4) * split.blocks.layers
        times = reductions * split.micro_steps(accumulation, parameters)
        ring, bandwidth = fabric.ring(split.tensor, fabric.per_node)
        volume = 2 * (split.tensor - 1) / split.tensor * message
        seconds += times * (volume / bandwidth + COLLECTIVE_SECONDS)
        sent += times * volume
        legs.append(ring)
    if split.pipeline > 1:
        hops = 2 * (split.pipeline - 1 + accumulation - 1)
        chain, bandwidth = fabric.ring(split.pipeline, fabric.per_node // (split.tensor * replicas))
        seconds += hops * message / bandwidth
        sent += hops * message
        legs.append(chain)
    over = " and ".join(dict.fromkeys(leg.id for leg in legs))
    return Traffic(seconds, sent, max(leg.log_sd for leg in legs), over)
