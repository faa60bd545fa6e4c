"""What a measurement was made on and under: read, never set, but for this process's threads and allocator."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# glibc's mallopt parameters (malloc.h).
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
_TOP_PAD_BYTES = 256 * 2**20
PINNED = "glibc malloc, never mmap, never trim, pad 256 MiB"
DEFAULT = "default malloc"


def pin_allocator() -> str:
    """Let this process keep freed memory, as CUDA's caching allocator does; says what is in force now.

    With glibc's defaults a step returns hundreds of megabytes to the system and takes them back, 0.4 ms a
    megabyte of page faults: 15 % of a DistilBERT step and most of its noise.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # macOS and musl have no mallopt
        return DEFAULT
    done = mallopt(_M_MMAP_MAX, 0) and mallopt(_M_TRIM_THRESHOLD, -1) and mallopt(_M_TOP_PAD, _TOP_PAD_BYTES)
    return PINNED if done else DEFAULT


def device_kind(asked: str | None) -> str:
    """ "cuda" where a card can be used, else "cpu", unless asked for by name."""
    import torch

    if asked is not None:
        return asked
    return "cuda" if torch.cuda.is_available() else "cpu"


def describe_device(kind: str) -> dict[str, Any]:
    """Name and figures of the device as the system reports them."""
    if kind == "cpu":
        return {"kind": "cpu", "name": _processor(), "cores": os.cpu_count(), "machine": platform.machine()}
    import torch

    found = torch.cuda.get_device_properties(0)
    return {
        "kind": "cuda",
        "name": found.name,
        "compute_capability": f"{found.major}.{found.minor}",
        "memory_bytes": found.total_memory,
        "sm_count": found.multi_processor_count,
        "l2_bytes": getattr(found, "L2_cache_size", None),
        "count": torch.cuda.device_count(),
        **nvidia_smi("power.limit", "clocks.max.sm", "driver_version"),
    }


def describe_software(kind: str, allocator: str) -> dict[str, Any]:
    """Versions and the flags that change what an op costs."""
    import torch

    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "threads": torch.get_num_threads(),
        "allocator": allocator,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
        if kind == "cuda"
        else None,
        "tf32_matmul": torch.get_float32_matmul_precision() != "highest",
        "tf32_cudnn": bool(torch.backends.cudnn.allow_tf32),
        "cuda_allocator": os.environ.get("PYTORCH_CUDA_ALLOC_CONF"),
    }


def nvidia_smi(*fields: str) -> dict[str, str]:
    """Fields of `nvidia-smi --query-gpu` for the first card; empty where there is no such tool."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return {}
    command = [tool, f"--query-gpu={','.join(fields)}", "--format=csv,noheader", "--id=0"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    values = [value.strip() for value in done.stdout.strip().split(",")]
    return dict(zip((field.replace(".", "_") for field in fields), values, strict=False))


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread inside, as everywhere here: seconds of CPU time are then those of the step."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Let products and convolutions of float32 run in TF32 or not, for the length of the block.

    Torch's own default is half and half: products in true fp32, convolutions in TF32.
    """
    import torch

    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]


def load_average() -> float | None:
    """Processes that want to run, averaged over the last minute; None where the system does not say."""
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        return platform.processor() or platform.machine()
    return platform.processor() or platform.machine()
