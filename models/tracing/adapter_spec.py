"""What is trained instead of the whole model: low-rank adapters on a frozen, perhaps quantised, base.

A spec is written as text, which is what a TraceVariant carries: "lora-r16-q_proj+v_proj-fp32-nf4-dq".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import BadConfig

# How the frozen linear weights are stored; "" leaves them in the dtype of the policy.
QUANTISATIONS = ("", "nf4", "nf4-dq", "int8")
DTYPES = ("fp32", "bf16")

# bitsandbytes: one absmax per block of 64 weights; double quantisation keeps it in one byte, with one fp32
# scale per 256 of those. Sources: Dettmers et al. 2023 (QLoRA); bitsandbytes functional.quantize_4bit.
BLOCK = 64
SECOND_BLOCK = 256

# What levers offer: rank 16 on queries and values, adapters in fp32 as PEFT makes them.
USUAL_ADAPTER = "lora-r16-q_proj+v_proj-fp32"

_FORM = re.compile(
    r"lora-r(?P<rank>\d+)-(?P<targets>[A-Za-z0-9_.]+(\+[A-Za-z0-9_.]+)*)-(?P<dtype>fp32|bf16)"
    r"(-(?P<quantisation>nf4-dq|nf4|int8))?"
)


@dataclass(frozen=True, slots=True)
class AdapterSpec:
    """LoRA of `rank` on every linear layer whose last name is in `targets`; all else is frozen.

    dtype: of the adapters, "fp32" (what PEFT makes of them) or "bf16".
    quantisation: of the frozen linear layers but the output head; one of QUANTISATIONS.
    """

    rank: int
    targets: tuple[str, ...]
    dtype: str = "fp32"
    quantisation: str = ""

    @property
    def key(self) -> str:
        """The text that `parse` reads."""
        tail = f"-{self.quantisation}" if self.quantisation else ""
        return f"lora-r{self.rank}-{'+'.join(self.targets)}-{self.dtype}{tail}"


def parse(text: str) -> AdapterSpec:
    """The spec written as `text`. Raises BadConfig with the form.

    >>> parse("lora-r16-q_proj+v_proj-fp32-nf4-dq").quantisation
    'nf4-dq'
    """
    found = _FORM.fullmatch(text)
    if found is None or int(found["rank"]) < 1:
        raise BadConfig(
            f'no adapter "{text}"; write lora-r16-q_proj+v_proj-fp32, with -nf4, -nf4-dq or -int8 behind it '
            "for a quantised base"
        )
    return AdapterSpec(
        int(found["rank"]), tuple(found["targets"].split("+")), found["dtype"], found["quantisation"] or ""
    )


def packed_bytes(weights: int, quantisation: str) -> int:
    """Memory of `weights` frozen linear weights stored under `quantisation`, constants included. [B]

    NF4 takes half a byte and 32 bits of absmax per 64 weights; with double quantisation 8 bits per 64 and 32
    per 16,384. int8 (LLM.int8) takes a byte; its fp32 scale per row is left to the caller.

    >>> packed_bytes(64 * 256, "nf4"), packed_bytes(64 * 256, "nf4-dq")
    (9216, 8452)
    """
    if quantisation == "int8":
        return weights
    blocks = -(-weights // BLOCK)
    scales = 4 * blocks if quantisation == "nf4" else blocks + 4 * -(-blocks // SECOND_BLOCK)
    return -(-weights // 2) + scales
