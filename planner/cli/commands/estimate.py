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
TensorParallel = Annotated[str, typer.Option(metavar="N", help="GPUs that hold one replica between them.")]
AllocConf = Annotated[str | None, typer.Option(help="Replay under this PYTORCH_CUDA_ALLOC_CONF.")]
Link = Annotated[str | None, typer.Option(help="What joins the GPUs; else what that card usually has.")]


def _more(panel: str) -> Any:
    def option(help: str, metavar: str | None = None) -> Any:
        return typer.Option(help=help, metavar=metavar, rich_help_panel=panel)

    return option


_split, _fed = _more("Several machines, large models"), _more("What feeds it")


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
    tensor_parallel: TensorParallel = "1",
    alloc_conf: AllocConf = None,
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
        tensor_parallel=_whole("tensor_parallel", tensor_parallel) or 1,
        alloc_conf=alloc_conf,
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
    adapter: Annotated[
        str | None, typer.Option(metavar="lora|qlora|SPEC", help="Train adapters instead of all weights.")
    ] = None,
    torch_compile: Annotated[
        bool, typer.Option("--torch-compile", help="Steps run through torch.compile.")
    ] = False,
    nodes: Annotated[str, _split("Machines the GPUs stand in.", "N")] = "1",
    network: Annotated[str | None, _split("What joins the machines: efa and so on.")] = None,
    tensor_parallel: Annotated[str, _split("GPUs that share each layer.", "N")] = "1",
    pipeline_parallel: Annotated[str, _split("Stages the layers are cut into.", "N")] = "1",
    sample_cpu_seconds: Annotated[str | None, _fed("What a sample costs one CPU core.", "S")] = None,
    cores_per_gpu: Annotated[str | None, _fed("That load for each GPU; else the machine's.", "N")] = None,
    sample_bytes: Annotated[str | None, _fed("Read from storage for a sample.", "BYTES")] = None,
    storage_bytes_per_second: Annotated[str | None, _fed("Of one machine.", "N")] = None,
) -> Answer:
    """Samples per second with an 80 % band, and where the time of a step goes.

    Examples:
      planner estimate throughput --model resnet50 --gpu a100-sxm4-40gb --gpus 8
      planner estimate throughput --model llama-2-7b --gpu rtx-4090-24gb --adapter qlora --batch-size 4
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
        nodes=_whole("nodes", nodes) or 1,
        network=network,
        tensor_parallel=_whole("tensor_parallel", tensor_parallel) or 1,
        pipeline_parallel=_whole("pipeline_parallel", pipeline_parallel) or 1,
        adapter=adapter,
        torch_compile=torch_compile,
        sample_cpu_seconds=_amount("sample_cpu_seconds", sample_cpu_seconds),
        cores_per_gpu=_whole("cores_per_gpu", cores_per_gpu),
        sample_bytes=_amount("sample_bytes", sample_bytes),
        storage_bytes_per_second=_amount("storage_bytes_per_second", storage_bytes_per_second),
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


def _amount(key: str, value: str | None) -> Any:
    """A number as typed, read as a plan's request reads it. Raises UsageError naming the flag."""
    if value is None:
        return None
    from planner.errors import UsageError
    from planner.request import CONVERT

    try:
        return CONVERT[key](value)
    except ValueError as error:
        raise UsageError(f"--{key.replace('_', '-')} {value}: {error}", key) from error
