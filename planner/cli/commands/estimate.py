"""`planner estimate memory` and `throughput`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from planner.cli.answering import answers
from planner.cli.commands import COMMANDS
from planner.cli.output import Answer

app = typer.Typer(help=COMMANDS["estimate"].summary, no_args_is_help=True, add_completion=False)

Model = Annotated[
    str, typer.Option("--model", "-m", help="A workload, config.json or package.module:factory.")
]
Gpu = Annotated[str, typer.Option(help="A GPU; for throughput an instance or a rig as well.")]
Precision = Annotated[str | None, typer.Option(help="fp32 tf32 fp16-amp bf16-amp fp16 bf16; else the usual.")]
BatchSize = Annotated[str | None, typer.Option(metavar="N", help="Samples on one GPU at a time.")]
SeqLen = Annotated[str | None, typer.Option(metavar="N", help="Tokens a sample, or image side.")]
Gpus = Annotated[str, typer.Option(metavar="N", help="GPUs that train together.")]
Accumulation = Annotated[str, typer.Option(metavar="N", help="Micro-batches per optimizer step.")]
Checkpointing = Annotated[bool, typer.Option("--checkpointing", help="Recompute activations in backward.")]
Strategy = Annotated[str, typer.Option(help="How GPUs share the work: ddp and so on.")]
Optimizer = Annotated[str | None, typer.Option(help="adamw-fused, adamw-8bit, adamw-paged-8bit and so on.")]
Adapter = Annotated[str | None, typer.Option(help="lora, qlora, or lora-r16-q_proj+v_proj-fp32-nf4-dq.")]
Offload = Annotated[str, typer.Option(help="To the host's memory: none, optimizer or parameters.")]
Link = Annotated[str | None, typer.Option(help="What joins the GPUs; else what that card usually has.")]


@app.callback()
def estimate() -> None:
    """How fast it runs; whether it fits in memory."""


@app.command()
@answers
def memory(
    model: Model,
    gpu: Gpu,
    precision: Precision = None,
    batch_size: BatchSize = None,
    seq_len: SeqLen = None,
    gpus: Gpus = "1",
    accumulation: Accumulation = "1",
    checkpointing: Checkpointing = False,
    strategy: Strategy = "ddp",
    optimizer: Optimizer = None,
    adapter: Adapter = None,
    offload: Offload = "none",
) -> Answer:
    """Whether one training step fits on a GPU, what fills it and what would make room.

    Example: planner estimate memory --model bert-large --gpu rtx-4090-24gb
    """
    from planner import api
    from planner.reports.estimate_pages import memory_page

    found = api.estimate_memory(
        model,
        gpu,
        precision=precision,
        batch_size=_whole("batch_size", batch_size),
        seq_len=_whole("seq_len", seq_len),
        gpus=_whole("gpus", gpus) or 1,
        accumulation=_whole("accumulation", accumulation) or 1,
        activation_checkpointing=checkpointing,
        strategy=strategy,
        optimizer=optimizer,
        adapter=adapter,
        offload=offload,
    )
    return _answer(found.to_json(), memory_page)


@app.command()
@answers
def throughput(
    model: Model,
    gpu: Gpu,
    precision: Precision = None,
    batch_size: BatchSize = None,
    seq_len: SeqLen = None,
    gpus: Gpus = "1",
    accumulation: Accumulation = "1",
    checkpointing: Checkpointing = False,
    strategy: Strategy = "ddp",
    link: Link = None,
) -> Answer:
    """Samples per second with an 80 % band, and where the time of a step goes.

    Example: planner estimate throughput --model resnet50 --gpu a100-sxm4-40gb --gpus 8
    """
    from planner import api
    from planner.reports.estimate_pages import throughput_page

    found = api.estimate_throughput(
        model,
        gpu,
        precision=precision,
        batch_size=_whole("batch_size", batch_size),
        seq_len=_whole("seq_len", seq_len),
        gpus=_whole("gpus", gpus) or 1,
        accumulation=_whole("accumulation", accumulation) or 1,
        activation_checkpointing=checkpointing,
        strategy=strategy,
        link=link,
    )
    return _answer(found.to_json(), throughput_page)


def _answer(document: dict[str, Any], page: Any) -> Answer:
    from planner.reports.records import record_rows

    title = f"{document['workload']} on {document['gpu']}: {document['kind']}"
    return Answer(
        document=document,
        items=[document],
        rows=lambda: record_rows({key: value for key, value in document.items() if key != "schema_version"}),
        table=lambda look: page(document, look),
        title=title,
    )


def _whole(key: str, value: str | None) -> int | None:
    """A count as typed. Raises UsageError naming the flag."""
    if value is None:
        return None
    if not value.isdecimal() or not 1 <= int(value) <= 10_000_000:
        from planner.errors import UsageError

        flag = f"--{key.replace('_', '-')}"
        raise UsageError(f"{flag} {value}: must be a whole number between 1 and 10,000,000", key)
    return int(value)
