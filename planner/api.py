"""The public functions: everything the command line and the service can do is one of these."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from .errors import NothingStored, UsageError
from .plan import Plan
from .request import OptimizeRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from decimal import Decimal
    from pathlib import Path

    from .break_even import BreakEven
    from .decisions import DecisionReport
    from .estimates import MemoryAnswer, ThroughputAnswer
    from .explaining.explanation import PlanExplanation, Progress
    from .listings import Listing
    from .market import Market
    from .models.hardware.catalogue import Gpu, Instance, Rig
    from .models.workloads.zoo import Workload
    from .options import Machine
    from .own_rigs import AtHand
    from .planning import Planning
    from .pricing.offer import Offer
    from .schedule.plan import SchedulePlan


def optimize(model: str | OptimizeRequest, **values: Any) -> Plan:
    """What training `model` costs and takes, on everything that could run it.

    model: a workload id, a config.json, "package.module:factory", or a whole request.
    values: the other keys of OptimizeRequest.
    Raises UsageError, Infeasible, NoPrice, NothingStored, and the errors of models and pricing.
    """
    from .planning import make_plan

    if isinstance(model, OptimizeRequest):
        if values:
            raise UsageError("give a request, or a model and its keys, not both")
        request = model
    else:
        request = OptimizeRequest.of(model=model, **values)
    return make_plan(planning_of(request))


def planning_of(request: OptimizeRequest) -> Planning:
    """The job, what could run it, prices and assumptions: all a plan is made from. Raises UsageError."""
    from .assumptions import assumptions
    from .estimator import TracedEstimator
    from .own_rigs import at_hand
    from .planning import Planning, default_as_of
    from .work import job_of, usual_precisions

    assume = assumptions(request.assume)
    found = find_workload(request.model, request.input_shape, request.vocab_size)
    job, told = job_of(found, request)
    as_of = request.as_of or default_as_of()
    market = market_for(request, as_of)
    owned = at_hand(request.own, market)
    machines = machines_for(request, market, owned)
    precisions = request.precision or usual_precisions(found)
    estimator = TracedEstimator(found, job.size, job.optimizer)
    estimator.prepare((machine.gpu for machine in machines), precisions)
    return Planning(
        request=request,
        job=job,
        job_assumptions=told,
        machines=machines,
        at_hand=owned,
        market=market,
        assume=assume,
        estimator=estimator,
        precisions=precisions,
        now=request.as_of or datetime.now(UTC),
    )


def optimize_schedule(schedule: str | Path | Mapping[str, Any], **settings: Any) -> SchedulePlan:
    """The exact front of a project's whole schedule: what to buy, what to rent, when and for which run.

    schedule: a YAML file, or its values. settings: as in planner.schedule.api.optimize_schedule.
    Raises UsageError, Infeasible (naming what to relax), NoPrice and NothingStored.
    """
    from .schedule.api import optimize_schedule as optimized

    return optimized(schedule, **settings)


def explain_plan(
    plan: str | Path | Mapping[str, Any],
    *,
    point: int | None = None,
    seconds: Any = None,
    progress: Progress | None = None,
) -> PlanExplanation:
    """Why a kept plan is what it is: limits moved one at a time and solved again, and what moves its cost.

    plan: the file of a plan, or its document. point: which plan of it; None: the one to book.
    seconds: most wall time of each search of a schedule. Raises UsageError, NothingStored and NoPrice.
    """
    from .explaining.explanation import explained
    from .explaining.schedule_limits import SECONDS
    from .reports.plan_file import checked, read_document

    document = checked(plan, "plan") if isinstance(plan, dict) else read_document(str(plan))
    most = SECONDS if seconds is None else float(_number("seconds", seconds, "0.1", "3600"))
    return explained(document, point, seconds=most, progress=progress)


def breakeven(
    hardware: str, *, model: str | None = None, against: str | None = None, **values: Any
) -> BreakEven:
    """From how many runs, hours and at what utilization a rig of one's own is cheaper than renting.

    hardware: a rig of the catalogue. model: None: the reference run of bert-base. against: an instance or a
    card to compare with; None: the cheapest of each way of renting. values: other keys of OptimizeRequest.
    Raises UsageError, Infeasible, NoPrice, NothingStored.
    """
    from .break_even import breakeven as worked_out

    return worked_out(hardware, model, against, values)


def _number(key: str, value: Any, low: str, high: str) -> Decimal:
    from .request import number

    try:
        found = number(value)
    except ValueError as error:
        raise UsageError(f"{key} = {value}: {error}", key) from error
    if not Decimal(low) <= found <= Decimal(high):
        raise UsageError(f"{key} = {value}: must lie between {low} and {high}", key)
    return found


def check_schedule(schedule: str | Path | Mapping[str, Any]) -> list[dict[str, Any]]:
    """The runs of a schedule file, written out, once nothing is wrong with it. Raises UsageError."""
    from .schedule.api import runs_as_rows

    return runs_as_rows(schedule)


def schedule_schema() -> dict[str, Any]:
    """The JSON schema of schedule files."""
    from .schedule.file import ScheduleFile

    return ScheduleFile.model_json_schema()


def estimate_memory(
    model: str,
    gpu: str,
    *,
    precision: str | None = None,
    batch_size: int | None = None,
    seq_len: int | None = None,
    gpus: int = 1,
    accumulation: int = 1,
    activation_checkpointing: bool = False,
    strategy: str = "ddp",
    optimizer: str | None = None,
    adapter: str | None = None,
    offload: str = "none",
    tensor_parallel: int = 1,
    alloc_conf: str | None = None,
) -> MemoryAnswer:
    """Whether one training step fits on `gpu`, and what fills it. batch_size: of one GPU, the micro-batch.

    precision: default the workload's most usual that the card runs. Of an instance or rig its card is meant.
    optimizer: a name of models.tracing.optimizers.OPTIMIZERS; default that of the workload's reference run.
    adapter: "lora", "qlora" (a 4-bit base, double quantisation) or a whole spec; default trains all weights.
    offload: "optimizer" or "parameters" to the host's memory; "none".
    tensor_parallel: GPUs that hold one replica between them, for language models.
    alloc_conf: as PYTORCH_CUDA_ALLOC_CONF; the step is then replayed under it within what the card leaves.
    Raises the errors of models and UsageError.
    """
    from .asking_memory import memory_of

    asked = {
        "precision": precision,
        "batch_size": batch_size,
        "gpus": gpus,
        "accumulation": accumulation,
        "activation_checkpointing": activation_checkpointing,
        "strategy": strategy,
        "optimizer": optimizer,
        "adapter": adapter,
        "offload": offload,
        "tensor_parallel": tensor_parallel,
        "alloc_conf": alloc_conf,
    }
    return memory_of(find_workload(model), gpu, seq_len, asked)


def estimate_throughput(
    model: str,
    gpu: str,
    *,
    precision: str | None = None,
    batch_size: int | None = None,
    seq_len: int | None = None,
    gpus: int = 1,
    accumulation: int = 1,
    activation_checkpointing: bool = False,
    strategy: str = "ddp",
    link: str | None = None,
    nodes: int = 1,
    network: str | None = None,
    tensor_parallel: int = 1,
    pipeline_parallel: int = 1,
    adapter: str | None = None,
    torch_compile: bool = False,
    sample_cpu_seconds: float | Decimal | None = None,
    cores_per_gpu: int | None = None,
    sample_bytes: float | Decimal | None = None,
    storage_bytes_per_second: float | Decimal | None = None,
) -> ThroughputAnswer:
    """How fast `model` trains on `gpus` cards, in all. batch_size: of one replica, the micro-batch.

    gpu: a GPU, an instance or a rig; the last two bring their own link and count.
    link: a link class; None: the usual one of that card. nodes: machines; network: what joins them.
    tensor_parallel, pipeline_parallel: GPUs that hold one replica of a language model between them.
    adapter: "lora", "qlora" or a spec such as lora-r16-q_proj+v_proj-fp32-nf4-dq; None trains all weights.
    sample_cpu_seconds, cores_per_gpu, sample_bytes, storage_bytes_per_second: as in OptimizeRequest.
    Raises the errors of models and UsageError.
    """
    from .asking import throughput_of

    asked = {
        "precision": precision,
        "batch_size": batch_size,
        "gpus": gpus,
        "accumulation": accumulation,
        "activation_checkpointing": activation_checkpointing,
        "strategy": strategy,
        "link": link,
        "nodes": nodes,
        "network": network,
        "tensor_parallel": tensor_parallel,
        "pipeline_parallel": pipeline_parallel,
        "adapter": adapter,
        "torch_compile": torch_compile,
        "sample_cpu_seconds": sample_cpu_seconds,
        "cores_per_gpu": cores_per_gpu,
        "sample_bytes": sample_bytes,
        "storage_bytes_per_second": storage_bytes_per_second,
    }
    return throughput_of(find_workload(model), gpu, seq_len, asked)


def list_prices(
    *,
    item: str | None = None,
    provider: str | None = None,
    region: str | None = None,
    contract: str | None = None,
    kind: str | None = None,
    as_of: str | date | None = None,
) -> Listing:
    """Stored offers, the latest of each key as of that moment (a date means its last second, UTC).

    Raises UsageError for a moment that does not read, NothingStored where the store cannot be used.
    """
    from .lists import price_list
    from .pricing.errors import StoreUnusable
    from .pricing.reading import open_for_reading

    moment = _moment(as_of)
    try:
        with open_for_reading() as store:
            offers = store.latest(
                moment, item=item, provider=provider, region=region, contract=contract, kind=kind
            )
            if not offers:
                asked = {
                    "item": item,
                    "provider": provider,
                    "region": region,
                    "contract": contract,
                    "kind": kind,
                }
                stored = store.latest(moment)
                if not stored:
                    raise NothingStored(
                        f"no price had been observed by {moment:%Y-%m-%d}; ask for a later --as-of, or "
                        "import older prices: planner prices import FILE"
                    )
                _refuse_unknown(asked, stored)
    except StoreUnusable as error:
        raise NothingStored(str(error)) from error
    return price_list(offers, moment)


def validate_decisions(file: str | Path, *, as_of: str | date | None = None) -> DecisionReport:
    """Wrong picks between two cards, and their regret in money, by predicted against by measured speed.

    file: a table of measured throughput rows. as_of: prices as known then.
    Raises UsageError for a file that is no such table, NoPrice and NothingStored.
    """
    from .decisions import validate_decisions as validated
    from .models.errors import BadData

    try:
        return validated(file, _moment(as_of))
    except (BadData, OSError) as error:
        raise UsageError(f"{file}: {error}" if isinstance(error, OSError) else str(error), "file") from error


def _moment(as_of: str | date | None) -> datetime:
    """Up to when prices are used; None: the end of today. Raises UsageError."""
    from .planning import default_as_of
    from .request import instant

    try:
        return default_as_of() if as_of is None else instant(as_of)
    except ValueError as error:
        raise UsageError(f"as_of = {as_of}: {error}", "as_of") from error


def _refuse_unknown(asked: Mapping[str, str | None], stored: Sequence[Offer]) -> None:
    """Raises UsageError for the first name that no offer has, with the nearest: an empty list says less."""
    from .models.errors import nearest_names

    for key, name in asked.items():
        known = {str(getattr(offer, key)) for offer in stored}
        if name is not None and known and name not in known:
            near = nearest_names(name, sorted(known), limit=1)
            hint = f' Did you mean "{near[0]}"?' if near else " All of them: planner prices list"
            raise UsageError(f'no stored price has the {key} "{name}".{hint}', key)


def list_hardware(kind: str | None = None) -> Listing:
    """Every GPU, instance and rig of the catalogue. kind: "gpu", "instance" or "rig"; None: all."""
    from .lists import hardware_list

    if kind not in (None, "gpu", "instance", "rig"):
        raise UsageError(f"kind = {kind}: must be gpu, instance or rig", "kind")
    return hardware_list(kind)


def show_hardware(name: str) -> Gpu | Instance | Rig:
    """One GPU, instance or rig, with source and date of each figure. Raises UnknownName."""
    from .models.hardware import catalogue

    return catalogue.hardware(name)


def list_workloads() -> Listing:
    """Every named workload."""
    from .lists import workload_list
    from .models.workloads import zoo

    return workload_list(zoo.workloads())


def show_workload(name: str) -> Workload:
    """One named workload, with its reference run. Raises UnknownName."""
    from .models.workloads import zoo

    return zoo.workload(name)


def find_workload(name: str, input_shape: str | None = None, vocab_size: int | None = None) -> Workload:
    """A named workload, a config.json, or "package.module:factory"; the last may need a shape.

    Raises UsageError naming the nearest, and the errors of planner.models for a broken configuration.
    """
    from .models.errors import UnknownName
    from .models.workloads import zoo

    is_config = name.endswith(".json") or "/config" in name
    if ":" in name and not is_config:
        return zoo.from_factory(name, input_shape=input_shape, vocab_size=vocab_size)
    for key, value in (("input_shape", input_shape), ("vocab_size", vocab_size)):
        if value is not None:
            told = (
                f"{key} = {value}: only a package.module:factory takes one; {name} says what its samples are"
            )
            raise UsageError(told, key)
    if is_config:
        return zoo.from_config(name)
    try:
        return zoo.workload(name)
    except UnknownName as error:
        raise UsageError(str(error), "model") from error


def market_for(request: OptimizeRequest, as_of: datetime) -> Market:
    """The stored offers as of then, in the request's currency. Raises NothingStored."""
    from .market import stored_market

    return stored_market(as_of, request.currency, fx=request.fx, max_age_hours=request.max_price_age)


def machines_for(request: OptimizeRequest, market: Market, owned: AtHand) -> Sequence[Machine]:
    """Every instance and rig that the filters leave, and what the user owns."""
    from .models.hardware import catalogue
    from .options import Machine
    from .own_rigs import machine_of_rig
    from .planning import check_names

    check_names("provider", request.provider, sorted({*market.providers, "own"}))
    check_names("region", request.region, sorted(market.regions))
    rented = [
        Machine(i.id, i.provider, catalogue.gpu(i.gpu), i.gpu_count, i.link, i.network, vcpus=i.vcpus)
        for i in catalogue.instances()
    ]
    rigs = [machine_of_rig(rig) for rig in catalogue.rigs() if rig.id not in owned.counts]
    wanted = _wanted_gpus(request.gpu)
    kept = [
        machine
        for machine in (*rented, *rigs)
        if (not wanted or machine.gpu.id in wanted)
        and (not request.provider or machine.provider in request.provider)
    ]
    return [*kept, *owned.machines]


def _wanted_gpus(names: Sequence[str]) -> frozenset[str]:
    from .models.errors import ModelsError
    from .models.hardware import catalogue

    found: set[str] = set()
    for name in names:
        cards = catalogue.candidates(name)
        if not cards:
            try:
                catalogue.gpu(name)
            except ModelsError as error:
                raise UsageError(f"gpu = {name}: {error}", "gpu") from error
        found.update(card.id for card in cards)
    return frozenset(found)
