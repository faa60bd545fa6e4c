"""The classifiers of memory rows by the name their library gives them, and how one of them is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...tracing.task import TrainingTask
from . import vision_cnn, vision_tokens


@dataclass(frozen=True, slots=True)
class Network:
    """build: the plain module.   parameters_millions: as published, to two places."""

    build: Callable[[], nn.Module]
    parameters_millions: float


# Parameters: param_count of huggingface/pytorch-image-models
# results/benchmark-train-amp-nchw-pt112-cu113-rtx3090.csv (5e7d47ca), the file the rows come from.
NETWORKS: Mapping[str, Network] = {
    "vgg11": Network(vision_cnn.vgg11, 132.86),
    "vgg19": Network(vision_cnn.vgg19, 143.67),
    "densenet169": Network(vision_cnn.densenet169, 14.15),
    "densenet201": Network(vision_cnn.densenet201, 20.01),
    "resnext101-32x8d": Network(vision_cnn.resnext101_32x8d, 88.79),
    "torchvision-convnext-tiny": Network(vision_cnn.convnext_tiny, 28.59),
    "torchvision-convnext-base": Network(vision_cnn.convnext_base, 88.59),
    "inception-v3": Network(vision_cnn.inception_v3, 23.83),
    "mobilenet-v3-large": Network(vision_cnn.mobilenet_v3_large, 5.48),
    "efficientnet-v2-s": Network(vision_cnn.efficientnet_v2_s, 21.46),
    "efficientnet-v2-m": Network(vision_cnn.efficientnet_v2_m, 54.14),
    "efficientnet-v2-l": Network(vision_cnn.efficientnet_v2_l, 118.52),
    "beit-base": Network(vision_tokens.beit_base, 86.53),
    "beit-large": Network(vision_tokens.beit_large, 304.43),
    "cait-s24": Network(vision_tokens.cait_s24, 46.92),
    "mixer-b16": Network(vision_tokens.mixer_b16, 59.88),
    "nfnet-f0": Network(vision_tokens.nfnet_f0, 71.49),
}


def task(model: str, size: int | None) -> TrainingTask:
    """One step of ImageNet classification at `size` pixels."""
    side = size or 224

    def inputs(batch: int) -> Mapping[str, Tensor]:
        images = torch.empty(batch, 3, side, side, device="meta")
        return {"images": images, "labels": torch.zeros(batch, dtype=torch.long, device="meta")}

    def loss(network: nn.Module, given: Mapping[str, Tensor]) -> Tensor:
        return functional.cross_entropy(network(given["images"]), given["labels"])

    return TrainingTask(model, lambda _: NETWORKS[model].build(), inputs, loss, side)
