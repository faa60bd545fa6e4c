"""How much there is to train: the reference run of a workload, changed by what the user says."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

from .answer import Assumption, Job
from .errors import UsageError
from .request import OptimizeRequest

if TYPE_CHECKING:
    from .models.workloads.zoo import ReferenceRun, Workload

# A run of more optimizer steps than this was never made; the request is a slip.
_MOST_STEPS = 10**10


def job_of(workload: Workload, request: OptimizeRequest) -> tuple[Job, tuple[Assumption, ...]]:
    """The run to plan, and what of it was taken from the reference run.

    samples = ceil(dataset_samples × epochs), or ceil(tokens / tokens of a sample); steps = ceil(samples /
    global batch). Raises UsageError where the workload has no reference run and the user left a part open.
    """
    reference = workload.reference
    size = sample_size(workload, request.seq_len)
    batch = request.batch_size or _need(reference, "batch_size", workload).global_batch_size
    dataset_samples: int | None = None
    epochs: Decimal | None = None
    if request.tokens is not None:
        samples = math.ceil(request.tokens / tokens_per_sample(workload, size))
    else:
        epochs = request.epochs or Decimal(_need(reference, "epochs", workload).epochs)
        dataset_samples = (
            request.dataset_samples or _need(reference, "dataset_samples", workload).dataset_samples
        )
        samples = math.ceil(dataset_samples * epochs)
    steps = math.ceil(samples / batch)
    if steps > _MOST_STEPS:
        raise UsageError(
            f"this run would be {steps:,} optimizer steps of {batch:,} samples; "
            "check epochs, tokens, dataset_samples and batch_size",
            "epochs" if request.tokens is None else "tokens",
        )
    job = Job(
        workload=workload.id,
        title=workload.title,
        parameters=workload.parameters,
        epochs=epochs,
        tokens=request.tokens,
        dataset=reference.dataset
        if reference and request.dataset_samples is None
        else "the data set you named",
        dataset_samples=dataset_samples,
        samples=samples,
        size=size,
        size_unit=size_unit(workload),
        global_batch_size=batch,
        steps=steps,
        optimizer=reference.optimizer if reference else "adamw-foreach",
    )
    return job, _assumed(workload, request, job)


def sample_size(workload: Workload, seq_len: int | None) -> int | None:
    """Tokens or pixels of one sample. Raises UsageError for more than the model's position table holds."""
    size = seq_len or workload.default_size
    if seq_len is not None and workload.default_size is None and workload.reference is not None:
        raise UsageError(f"seq_len = {seq_len}: samples of {workload.id} have no length", "seq_len")
    if size is not None and workload.largest_size is not None and size > workload.largest_size:
        raise UsageError(
            f"seq_len = {size:,}: {workload.id} holds at most {workload.largest_size:,} positions", "seq_len"
        )
    return size


def tokens_per_sample(workload: Workload, size: int | None) -> int:
    """What one sample counts for in a run given in tokens. Raises UsageError where samples have no tokens."""
    reference = workload.reference
    if reference is None and size is not None:
        return size
    if reference is None or reference.tokens_per_sample is None or size is None:
        raise UsageError(f"tokens: samples of {workload.id} are not tokens; give epochs instead", "tokens")
    if reference.size is None or size == reference.size:
        return reference.tokens_per_sample
    return size


def usual_precisions(workload: Workload) -> tuple[str, ...]:
    """What people train this in, most usual first."""
    return workload.reference.precisions if workload.reference else ("bf16-amp", "fp16-amp", "tf32", "fp32")


def _need(reference: ReferenceRun | None, key: str, workload: Workload) -> ReferenceRun:
    if reference is None:
        flag = "--" + key.replace("_", "-")
        raise UsageError(f"{key} is needed: {workload.id} has no reference run; give {flag}", key)
    return reference


def size_unit(workload: Workload) -> str | None:
    """ "tokens" or "pixels"; None where samples have no size."""
    return (
        workload.reference.size_unit if workload.reference else ("tokens" if workload.default_size else None)
    )


def _assumed(workload: Workload, request: OptimizeRequest, job: Job) -> tuple[Assumption, ...]:
    reference = workload.reference
    found = []
    if reference is not None:
        by_epochs = request.tokens is None
        open_keys = [
            f"{what} {value}"
            for what, value, was_given in (
                ("epochs", reference.epochs, request.epochs is not None or not by_epochs),
                (
                    f"samples of {reference.dataset}",
                    f"{reference.dataset_samples:,}",
                    request.dataset_samples,
                ),
                ("global batch", reference.global_batch_size, request.batch_size),
                (reference.size_unit or "size", reference.size, request.seq_len or reference.size is None),
            )
            if not was_given
        ]
        taken = f"; taken from it: {', '.join(open_keys)}" if open_keys else "; nothing taken from it"
        found.append(Assumption("reference_run", f"reference run: {reference.text}{taken}", reference.source))
    found.append(
        Assumption(
            "optimizer_steps",
            f"{job.samples:,} samples / {job.global_batch_size:,} = {job.steps:,} optimizer steps; "
            f"optimizer {job.optimizer}",
            "computed",
        )
    )
    return tuple(found)
