"""The form of the main question: which keys of a request it asks for, in which words, and what went wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from planner.request import request_keys


@dataclass(frozen=True, slots=True)
class Field:
    """One input. key: of OptimizeRequest. names: id of a list of names that the browser may offer.

    inputmode: the keyboard a phone shows. choices: (value, words) for a select; () for a text input.
    """

    key: str
    label: str
    hint: str
    example: str = ""
    inputmode: str = "text"
    names: str = ""
    choices: tuple[tuple[str, str], ...] = ()


MAIN = (
    Field("model", "Model", "A workload we know.", "bert-base", names="workloads"),
    Field("epochs", "Epochs", "Times through the data.", "10", "decimal"),
    Field("budget", "Budget", "Most the run may cost.", "50", "decimal"),
    Field("deadline", "Deadline", "6h, 3d, or 2026-12-24T18:00:00Z.", "3d"),
    Field("own", "Own hardware", "Rigs you have; commas between.", "rig-4x-rtx-4090", names="rigs"),
    Field("currency", "Currency", "Three letters.", "USD", names="currencies"),
)

MORE = (
    Field("tokens", "Tokens", "Instead of epochs.", "9e9", "decimal"),
    Field("dataset_samples", "Samples of an epoch", "Else the reference run's.", "87599", "decimal"),
    Field("batch_size", "Global batch", "Samples of an optimizer step.", "32", "numeric"),
    Field("seq_len", "Sample size", "Tokens, or image side.", "384", "numeric"),
    Field("gpu", "Cards", "Only these.", "rtx-4090-24gb", names="gpus"),
    Field("provider", "Sellers", "Only these.", "aws", names="providers"),
    Field("region", "Regions", "Only these.", "us-east-1"),
    Field("precision", "Precisions", "Only these.", "bf16-amp"),
    Field("spot", "Spot", "Offers that may be interrupted.",
          choices=(("", "With the others"), ("true", "Only spot"), ("false", "None"))),
    Field("max_gpus", "Most GPUs", "Of one option.", "16", "numeric"),
    Field("sample_cpu_seconds", "Loading", "CPU seconds of a core for one sample.", "0.01", "decimal"),
    Field("cores_per_gpu", "Loader cores", "Of each GPU; else the machine's.", "8", "numeric"),
    Field("sample_bytes", "Sample bytes", "Read from storage for one sample.", "150e3", "decimal"),
    Field("storage_bytes_per_second", "Storage", "Bytes a second of one machine.", "1e9", "decimal"),
    Field("torch_compile", "torch.compile", "Steps run through it.",
          choices=(("", "No"), ("true", "Yes"))),
    Field("confidence", "Certainty", "Hold limits with so many per cent.", "90", "decimal"),
    Field("horizon", "Horizon", "Sell what was bought after so long.", "24m"),
    Field("utilization", "Utilization", "Share of its life a rig works.", "0.5", "decimal"),
    Field("electricity_price", "Electricity", "Per kWh.", "0.30", "decimal"),
    Field("pue", "PUE", "Facility power over IT power.", "1.2", "decimal"),
    Field("fx", "Exchange rates", "What one unit is worth.", "EUR=1.16"),
    Field("assume", "Assumptions", "Change some.", "staff_cost_per_rig_year=2000"),
    Field("as_of", "Prices as of", "A date.", "2026-12-01"),
    Field("max_price_age", "Oldest price", "Leave older ones out.", "90d"),
    Field("seed", "Seed", "Of the simulated P10 and P90.", "0", "numeric"),
)  # fmt: skip

KEYS = tuple(key for key in request_keys() if key not in ("input_shape", "vocab_size"))
"""What may be asked from a page: all but what only a factory of the user's own code would need."""

_LISTS = frozenset({"gpu", "provider", "region", "own", "precision", "fx", "assume"})
_LONGEST = 2_000
_COMPLAINT = re.compile(r"(\w+) = (.*?): (.*)", re.DOTALL)


def given(query: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The filled fields of a query, cut to a sane length; repeated ones joined with commas."""
    found: dict[str, str] = {}
    for key, value in query:
        written = value.strip()[:_LONGEST]
        if key in KEYS and written:
            found[key] = f"{found[key]},{written}" if key in found and key in _LISTS else written
    return found


def values(filled: Mapping[str, str]) -> dict[str, str | list[str]]:
    """The same as OptimizeRequest.of takes them."""
    return {
        key: [part.strip() for part in value.split(",") if part.strip()] if key in _LISTS else value
        for key, value in filled.items()
    }


def complaints(message: str, key: str | None) -> dict[str, str]:
    """A UsageError's message as field -> what is wrong; "" holds what no single field is to blame for."""
    found: dict[str, str] = {}
    lines = message.splitlines()
    for line in lines:
        match = _COMPLAINT.match(line)
        if match and match[1] in KEYS:
            found[match[1]] = f"{match[2]}: {match[3]}" if match[2] else match[3]
    if not found:
        found[key if key in KEYS else ""] = message
    return found


def query(filled: Mapping[str, str], **more: object) -> str:
    """The fields as an address carries them."""
    return urlencode({**filled, **{key: value for key, value in more.items() if value is not None}})
