"""What one micro-batch holds for each kind of training; shapes in the comments, letters as in `modules`.

Samples are taken as unpadded: no attention mask is passed, as for packed or fixed-length batches. Where a
padded batch does pass one, a card runs the memory-efficient kernel instead of flash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

Inputs = dict[str, "Tensor"]
Recipe = Callable[[int, int, Mapping[str, Any]], Inputs]


def inputs_of(recipe: str, batch: int, size: int, figures: Mapping[str, Any]) -> Inputs:
    """Keyword tensors of one micro-batch on the meta device, labels included so that the module gives a loss.

    size: tokens or pixels. figures: `builder.inputs` of the workload.
    """
    return _RECIPES[recipe](batch, size, figures)


def _ids(*shape: int) -> Tensor:
    import torch

    return torch.empty(*shape, dtype=torch.long, device="meta")


def _floats(*shape: int) -> Tensor:
    import torch

    return torch.empty(*shape, device="meta")


def _causal_lm(batch: int, size: int, figures: Mapping[str, Any]) -> Inputs:
    return {"input_ids": _ids(batch, size), "labels": _ids(batch, size)}


def _question_answering(batch: int, size: int, figures: Mapping[str, Any]) -> Inputs:
    return {
        "input_ids": _ids(batch, size),
        "start_positions": _ids(batch),
        "end_positions": _ids(batch),
    }


def _sequence_classification(batch: int, size: int, figures: Mapping[str, Any]) -> Inputs:
    return {"input_ids": _ids(batch, size), "labels": _ids(batch)}


def _seq2seq_lm(batch: int, size: int, figures: Mapping[str, Any]) -> Inputs:
    return {"input_ids": _ids(batch, size), "labels": _ids(batch, figures["target_tokens"])}


def _image_classification(batch: int, size: int, figures: Mapping[str, Any]) -> Inputs:
    return {"pixel_values": _floats(batch, figures["channels"], size, size), "labels": _ids(batch)}


def _speech_seq2seq(batch: int, size: int, figures: Mapping[str, Any]) -> Inputs:
    return {
        "input_features": _floats(batch, figures["mel_bins"], figures["frames"]),
        "labels": _ids(batch, size),
    }


def _image_text_contrastive(batch: int, size: int, figures: Mapping[str, Any]) -> Inputs:
    return {
        "input_ids": _ids(batch, figures["text_tokens"]),
        "pixel_values": _floats(batch, figures["channels"], size, size),
    }


_RECIPES: dict[str, Recipe] = {
    "causal-lm": _causal_lm,
    "masked-lm": _causal_lm,
    "question-answering": _question_answering,
    "sequence-classification": _sequence_classification,
    "seq2seq-lm": _seq2seq_lm,
    "image-classification": _image_classification,
    "speech-seq2seq": _speech_seq2seq,
    "image-text-contrastive": _image_text_contrastive,
}

# Keyword arguments that are no tensors, by recipe.
FLAGS: dict[str, dict[str, bool]] = {"image-text-contrastive": {"return_loss": True}}
