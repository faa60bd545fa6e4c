"""`planner optimize`: what a training run costs and takes, on what."""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.answering import answers
from planner.cli.commands import COMMANDS
from planner.cli.output import Answer
from planner.reports.look import look_of

if TYPE_CHECKING:
    from planner.config import Layer
    from planner.plan import Plan

app = typer.Typer(help=COMMANDS["optimize"].summary, add_completion=False)

ABOVE_LIMIT = 7
"""Exit code of a plan whose cheapest option costs more than --fail-above: the plan itself is sound."""


Text = str | None
Texts = list[str] | None


def _panel(title: str) -> Any:
    """Flags that stand together in help, made from their help, the name of their value and their names."""

    def option(help: str, metavar: str | None, *names: str) -> Any:
        return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=title)

    return option


_run, _where, _limit = _panel("The run"), _panel("What may run it"), _panel("Limits")
_fed = _panel("What feeds it")
_owning, _prices, _shown = _panel("Owning"), _panel("Prices"), _panel("What is shown")


@app.command()
@answers
def optimize(
    schedule: Annotated[
        Text, typer.Argument(metavar="[SCHEDULE]", help="A whole schedule in YAML, instead of --model.")
    ] = None,
    model: Annotated[
        Text, _run("A workload, config.json or package.module:factory.", "NAME", "--model", "-m")
    ] = None,
    epochs: Annotated[Text, _run("Times through the data.", "N")] = None,
    tokens: Annotated[Text, _run("Or: tokens to train on.", "N")] = None,
    dataset_samples: Annotated[Text, _run("Samples of one epoch.", "N")] = None,
    batch_size: Annotated[Text, _run("Samples of an optimizer step.", "N")] = None,
    seq_len: Annotated[Text, _run("Tokens a sample, or image side.", "N")] = None,
    input_shape: Annotated[Text, _run("Of a factory's model: 3x224x224.", "SHAPE")] = None,
    vocab_size: Annotated[Text, _run("Of a factory's model that takes token ids.", "N")] = None,
    torch_compile: Annotated[
        bool | None, _run("Steps run through torch.compile.", None, "--torch-compile")
    ] = None,
    sample_cpu_seconds: Annotated[Text, _fed("What a sample costs one CPU core.", "S")] = None,
    cores_per_gpu: Annotated[Text, _fed("That load for each GPU; else the machine's.", "N")] = None,
    sample_bytes: Annotated[Text, _fed("Read from storage for a sample.", "BYTES")] = None,
    storage_bytes_per_second: Annotated[Text, _fed("Of one machine.", "N")] = None,
    gpu: Annotated[Texts, _where("Only these cards. Repeat or use commas.", "NAME")] = None,
    provider: Annotated[Texts, _where("Only these sellers.", "NAME")] = None,
    region: Annotated[Texts, _where("Only these regions.", "CODE")] = None,
    precision: Annotated[Texts, _where("Only these: bf16-amp, tf32 and so on.", "NAME")] = None,
    spot: Annotated[bool | None, _where("Only spot offers, or none.", None, "--spot/--no-spot")] = None,
    max_gpus: Annotated[Text, _where("Most GPUs of one option.", "N")] = None,
    own: Annotated[Texts, _where("Rigs you have: rig-4x-rtx-4090.", "RIG")] = None,
    budget: Annotated[Text, _limit("Most the run may cost.", "AMOUNT")] = None,
    deadline: Annotated[Text, _limit("6h, 3d, or an RFC 3339 instant.", "WHEN")] = None,
    confidence: Annotated[Text, _limit("Hold limits with such certainty: 90.", "PERCENT")] = None,
    fail_above: Annotated[Text, _limit("Exit 7 where the cheapest costs more.", "AMOUNT")] = None,
    horizon: Annotated[Text, _owning("Sell what was bought after so long: 24m, 2y.", "TIME")] = None,
    utilization: Annotated[Text, _owning("Share of its life a rig works: 0.5.", "SHARE")] = None,
    electricity_price: Annotated[Text, _owning("Per kWh.", "AMOUNT")] = None,
    pue: Annotated[Text, _owning("Facility power over IT power: 1.2.", "N")] = None,
    assume: Annotated[Texts, _owning("Change an assumption.", "KEY=N")] = None,
    currency: Annotated[Text, _prices("Show money in this one.", "CODE")] = None,
    fx: Annotated[Texts, _prices("What one unit is worth: EUR=1.16.", "CODE=N")] = None,
    as_of: Annotated[Text, _prices("Prices as known then.", "DATE")] = None,
    max_price_age: Annotated[Text, _prices("Leave older prices out: 90d.", "TIME")] = None,
    seed: Annotated[Text, _prices("Of the simulated P10 and P90.", "N")] = None,
    explain: Annotated[Text, _shown("Every term of option N (a rank or an id).", "N")] = None,
    points: Annotated[Text, _limit("Most plans on a schedule's front: 12.", "N")] = None,
    objective: Annotated[Text, _limit("Of a schedule: finish, turnaround or lateness.", "NAME")] = None,
    everything: Annotated[
        bool, _shown("All options, not only the best of each kind.", None, "--all")
    ] = False,
    project: Annotated[Text, _shown("A label for the first column of csv.", "LABEL")] = None,
) -> Answer:
    """What a training run, or a whole schedule of runs, costs and takes, owned and cloud side by side.

    Flags about the plan may also stand in the configuration file or in
    PLANNER_ variables; see planner config show.

    Examples:
      planner optimize --model bert-base --epochs 10
      planner optimize --model gpt2 --tokens 9e9 --own rig-4x-rtx-4090
      planner optimize schedule.yaml --budget "60000 USD"
      planner optimize --model bert-base --epochs 10 --explain 1
    """
    given = locals()
    from planner.request import request_keys

    ceiling = _ceiling(fail_above)
    if schedule is not None:
        from planner.cli.scheduling import schedule_answer

        return schedule_answer(schedule, given, ceiling)
    for name in ("points", "objective"):
        if given[name] is not None:
            from planner.errors import UsageError

            raise UsageError(f"--{name} is about a schedule: planner optimize SCHEDULE.yaml", name)
    plan = _planned({key: _separated(given[key]) for key in request_keys()})
    for warning in plan.warnings:
        print(look_of(sys.stderr).text(f"warning: {warning}"), file=sys.stderr)
    if explain is not None:
        return _explained(plan, explain)
    return _answer(plan, everything, project, ceiling)


def _planned(flags: dict[str, Any]) -> Plan:
    """The plan of flags, environment and file together."""
    from planner import api, config
    from planner.errors import UsageError
    from planner.models.errors import UnknownName
    from planner.request import OptimizeRequest

    layers = config.layers(flags)
    settings = config.merged(layers)
    config.use_store(settings)
    if "model" not in settings:
        raise UsageError("which model? Say --model NAME; all names: planner workloads list", "model")
    request = OptimizeRequest.of(**config.request_values(settings))
    try:
        return api.optimize(request)
    except UnknownName as error:
        raise UsageError(f"{error}{_blame(layers, error.name)}") from error


def _separated(value: Any) -> Any:
    """Repeated flags and commas mean the same."""
    return [part for item in value for part in item.split(",")] if isinstance(value, list | tuple) else value


def _blame(layers: tuple[Layer, ...], name: str) -> str:
    """Where an unknown name was read, unless it was typed just now."""
    for layer in layers[1:]:
        for key, value in layer.values.items():
            if name == value or (isinstance(value, list | tuple) and name in value):
                return f" ({layer.where(key)})"
    return ""


def _explained(plan: Plan, which: str) -> Answer:
    from planner.reports.explanation import explanation_page, explanation_rows

    document = plan.explain(which).to_json()
    return Answer(
        document=document,
        items=document["terms"],
        rows=lambda: explanation_rows(document),
        table=lambda look: explanation_page(document, look),
        title=f"{document['id']}: {document['total']} {document['currency']}",
    )


def _answer(plan: Plan, everything: bool, project: str | None, ceiling: Decimal | None) -> Answer:
    from planner.reports import pareto_table
    from planner.reports.plan_rows import option_rows

    document = plan.to_json()
    notes = pareto_table.header(document)
    above = ceiling is not None and min(option.cost.p50 for option in plan.options) > ceiling
    if above:
        cheapest = min(plan.options, key=lambda option: option.cost.p50)
        print(f"above: the cheapest option costs {cheapest.cost.p50} {plan.currency}", file=sys.stderr)
    return Answer(
        document=document,
        items=document["options"],
        rows=lambda: option_rows(document, project),
        brief=lambda: pareto_table.brief_rows(document),
        table=lambda look: pareto_table.pareto_table(document, look, everything),
        title=notes[0],
        notes=notes[1:],
        exit_code=ABOVE_LIMIT if above else 0,
    )


def _ceiling(fail_above: str | None) -> Decimal | None:
    if fail_above is None:
        return None
    from planner.errors import UsageError
    from planner.request import number

    try:
        amount = number(fail_above)
    except ValueError as error:
        raise UsageError(f"--fail-above {fail_above}: {error}", "fail_above") from error
    if amount < 0:
        raise UsageError(f"--fail-above {fail_above}: must not be negative", "fail_above")
    return amount
