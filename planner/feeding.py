"""What a user says of their input pipeline, and what it makes of each machine.

Declared, never guessed: without `sample_cpu_seconds` or `sample_bytes` loading is taken to keep up, and the
answer says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from .errors import UsageError

if TYPE_CHECKING:
    from .models.input_pipeline import InputPipeline

KEYS = ("sample_cpu_seconds", "cores_per_gpu", "sample_bytes", "storage_bytes_per_second")
# Sellers count hardware threads; two of them share one core, and decoding keeps it busy.
THREADS_PER_CORE = 2


@dataclass(frozen=True, slots=True)
class Feeding:
    """seconds_per_sample: of one CPU core. [s]  cores_per_gpu: None: those of the machine.

    bytes_per_sample: read from storage [B]; storage_bytes_per_second: of one machine, shared by its GPUs.
    """

    seconds_per_sample: float
    cores_per_gpu: int | None
    bytes_per_sample: float
    storage_bytes_per_second: float | None

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> Feeding | None:
        """What the keys of a request say; None where they say nothing. Raises UsageError for half of it."""
        seconds, cores, size, bandwidth = (asked.get(key) for key in KEYS)
        if seconds is None and cores is not None:
            raise UsageError("cores_per_gpu needs sample_cpu_seconds: what one sample costs a core", KEYS[0])
        if (size is None) != (bandwidth is None):
            missing = KEYS[2] if size is None else KEYS[3]
            raise UsageError(
                f"sample_bytes and storage_bytes_per_second go together; give {missing}", missing
            )
        if seconds is None and size is None:
            return None
        return cls(
            float(seconds or Decimal(0)),
            cores,
            float(size or Decimal(0)),
            None if bandwidth is None else float(bandwidth),
        )

    def pipeline(self, machine: str, gpus: int, vcpus: int | None) -> InputPipeline:
        """What feeds each GPU of a machine of `gpus`. Raises CoresUnknown where its cores are not known."""
        from .models.input_pipeline import CoresUnknown, InputPipeline

        cores = self.cores_per_gpu
        if cores is None and self.seconds_per_sample:
            if vcpus is None:
                raise CoresUnknown(f"the CPU cores of {machine} are not known; give cores_per_gpu")
            cores = max(1, vcpus // THREADS_PER_CORE // gpus)
        share = None if self.storage_bytes_per_second is None else self.storage_bytes_per_second / gpus
        return InputPipeline(self.seconds_per_sample, cores or 1, self.bytes_per_sample, share)
