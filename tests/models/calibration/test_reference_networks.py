"""Benchmark networks written out: parameter counts equal the published ones."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from planner.models.calibration.reference_networks import (  # noqa: E402
    mobile_cnn,
    plain_cnn,
    resnet,
    ssd300,
    translation,
)

# torchvision's documented parameter counts; resnext101-32x4d as NVIDIA's example and timm state it.
PUBLISHED = {
    resnet.resnet18: 11_689_512,
    resnet.resnet50: 25_557_032,
    resnet.resnet152: 60_192_808,
    resnet.resnext50_32x4d: 25_028_904,
    resnet.resnext101_32x4d: 44_177_704,
    resnet.wide_resnet50_2: 68_883_240,
    plain_cnn.vgg16: 138_357_544,
    plain_cnn.squeezenet1_1: 1_235_496,
    plain_cnn.densenet121: 7_978_856,
    mobile_cnn.mobilenet_v2: 3_504_872,
    mobile_cnn.mnasnet1_0: 4_383_312,
    mobile_cnn.shufflenet_v2_x1_0: 2_278_604,
}


@pytest.mark.parametrize("build", PUBLISHED, ids=lambda build: build.__name__)
def test_a_classifier_has_the_published_number_of_parameters(build) -> None:  # type: ignore[no-untyped-def]
    with torch.device("meta"):
        network = build()
        logits = network(torch.empty(2, 3, 224, 224))
    assert sum(p.numel() for p in network.parameters()) == PUBLISHED[build]
    assert logits.shape == (2, 1000)


def test_ssd300_scores_8732_boxes() -> None:
    with torch.device("meta"):
        places, scores = ssd300.SSD300()(torch.empty(2, 3, 300, 300))
    assert places.shape == (2, 4, 8732)
    assert scores.shape == (2, 81, 8732)


def test_translation_models_predict_a_word_for_each_place() -> None:
    with torch.device("meta"):
        words = torch.zeros(2, 7, dtype=torch.long)
        gnmt, big = translation.GNMT(), translation.TransformerBig()
        assert gnmt(words, words).shape == (2, 7, translation.GNMT_VOCABULARY)
        assert big(words, words).shape == (2, 7, translation.TRANSFORMER_VOCABULARY)
    assert round(sum(p.numel() for p in gnmt.parameters()) / 1e6) == 160
    assert round(sum(p.numel() for p in big.parameters()) / 1e6) == 211
