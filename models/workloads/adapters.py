"""Adapters by their short names: what "lora" and "qlora" put where in each family of models.

Targets are peft's defaults (TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING of peft.utils.constants).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import BadConfig
from ..tracing import adapter_spec
from .records import Workload

SHORT_NAMES: Mapping[str, str] = {"lora": "", "qlora": "nf4-dq"}
_RANK = 16

_QUERY_VALUE = ("query", "value")
_Q_PROJ_V_PROJ = ("q_proj", "v_proj")
# By configuration class, or by module where the workload is one of our own.
_TARGETS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("AlbertConfig", "BertConfig", "ElectraConfig", "RobertaConfig"), _QUERY_VALUE),
    **dict.fromkeys(("CLIPConfig", "GemmaConfig", "GPTNeoConfig", "LlamaConfig"), _Q_PROJ_V_PROJ),
    **dict.fromkeys(("MistralConfig", "MixtralConfig", "OPTConfig", "PhiConfig"), _Q_PROJ_V_PROJ),
    **dict.fromkeys(("Qwen2Config", "WhisperConfig"), _Q_PROJ_V_PROJ),
    "DebertaV2Config": ("query_proj", "value_proj"),
    "DistilBertConfig": ("q_lin", "v_lin"),
    "GPT2Config": ("c_attn",),
    "GPTNeoXConfig": ("query_key_value",),
    "SwinConfig": _Q_PROJ_V_PROJ,
    "T5Config": ("q", "v"),
    "ViTConfig": _Q_PROJ_V_PROJ,
    "mpt:Mpt": ("qkv",),
    "dit:Dit": ("qkv",),
}


def adapter_of(workload: Workload, asked: str) -> str:
    """The spec, as adapter_spec writes it, that `asked` means for `workload`; "" trains all weights.

    asked: "", "lora", "qlora" (4-bit base with double quantisation), or a whole spec.
    Raises BadConfig for a spec that does not read, or a model without usual targets.
    """
    if not asked:
        return ""
    short = asked.casefold()
    if short not in SHORT_NAMES:
        return adapter_spec.parse(asked).key
    builder = workload.builder
    targets = _TARGETS.get(builder.config_class or builder.task_class)
    if targets is None:
        raise BadConfig(
            f"{workload.id} has no usual targets for {asked}; name its linear layers: "
            "lora-r16-NAME+NAME-fp32, with -nf4-dq behind it for a 4-bit base"
        )
    return adapter_spec.AdapterSpec(_RANK, targets, "fp32", SHORT_NAMES[short]).key
