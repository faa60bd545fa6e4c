"""What feeds a GPU: samples are read, decoded and handed over while the GPU computes, or it waits.

    delivery = samples x max(seconds per sample / workers, bytes per sample / storage bandwidth)
    step     = max(computing and communicating, delivery)

Loaders work ahead, so the slower of the two decides and nothing is added. Leaves out: the first batch, which
nothing hides, and cores that several GPUs of one machine share: give each GPU its share of workers.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import ModelsError


class CoresUnknown(ModelsError):
    """Decoding costs CPU time, and nobody says how many cores a machine has."""


@dataclass(frozen=True, slots=True)
class InputPipeline:
    """What one GPU is fed by, as declared by whoever measured it.

    seconds_per_sample: one worker's CPU time to read, decode and batch a sample. [s]
    workers: loader processes of one GPU, each on a core of its own.
    bytes_per_sample: read from storage [B]; storage_bytes_per_second: one GPU's share of it, or None where
    storage never waits.
    Raises ValueError for a negative time or size, and for less than one worker.

    >>> round(InputPipeline(seconds_per_sample=0.217).delivery_seconds(1000), 6)
    217.0
    """

    seconds_per_sample: float
    workers: int = 1
    bytes_per_sample: float = 0.0
    storage_bytes_per_second: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.seconds_per_sample < float("inf") or not 0 <= self.bytes_per_sample < float("inf"):
            raise ValueError("seconds_per_sample and bytes_per_sample must be finite and not negative")
        if self.workers < 1:
            raise ValueError(f"workers must be at least 1, got {self.workers}")
        if self.storage_bytes_per_second is not None and not self.storage_bytes_per_second > 0:
            raise ValueError("storage_bytes_per_second must be above 0, or None where storage never waits")

    def delivery_seconds(self, samples: int) -> float:
        """How long one GPU's `samples` take to arrive. [s]"""
        return samples * max(self._decoding, self._reading)

    def notes(self, gpu_seconds: float, delivery_seconds: float) -> tuple[str, ...]:
        """What to say of a step: nothing where the GPU is the slower of the two."""
        if delivery_seconds <= gpu_seconds:
            return ()
        return (
            f"{self.bottleneck} binds: a step's samples take {delivery_seconds:.3g} s to arrive, the GPU "
            f"{gpu_seconds:.3g} s; a faster GPU would not help",
        )

    @property
    def said(self) -> str:
        """The declaration in words."""
        storage = ""
        if self.storage_bytes_per_second is not None:
            megabytes = self.storage_bytes_per_second / 1e6
            storage = f", {self.bytes_per_sample / 1e3:.4g} kB each at {megabytes:.4g} MB/s"
        return (
            f"samples of {self.seconds_per_sample * 1e3:.4g} ms on {self.workers} cores a GPU{storage}, "
            "loaded ahead"
        )

    @property
    def bottleneck(self) -> str:
        """Which of the two is slower: "data loading" or "storage"."""
        return "storage" if self._reading > self._decoding else "data loading"

    @property
    def _decoding(self) -> float:
        return self.seconds_per_sample / self.workers

    @property
    def _reading(self) -> float:
        if self.storage_bytes_per_second is None:
            return 0.0
        return self.bytes_per_sample / self.storage_bytes_per_second
