"""What the reader of the data files refuses, and whether it says which file, table and key to mend."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.models.errors import BadData
from planner.models.hardware.compile import DATA
from planner.models.hardware.schema import FILES
from planner.models.hardware.toml_tables import read_catalogue

Edit = Callable[[str, str, str], Path]


@pytest.fixture
def edit(tmp_path: Path) -> Edit:
    """Copies the data files and replaces one text in one of them."""
    for name in FILES:
        shutil.copy(DATA / name, tmp_path / name)

    def replace_once(file: str, old: str, new: str) -> Path:
        path = tmp_path / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        return tmp_path

    return replace_once


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        pytest.param(
            "gpus.toml",
            'source = "nvidia-t4"\n',
            "",
            "gpus.toml [t4-16gb] memory_gib: has no source, and the table states none",
            id="missing source",
        ),
        pytest.param(
            "gpus.toml",
            'source = "nvidia-t4"',
            'source = "nvidia-t44"',
            '"nvidia-t44" is not in sources.toml; did you mean "nvidia-t4"?',
            id="unknown source",
        ),
        pytest.param(
            "gpus.toml",
            'source = "nvidia-t4"\nchecked = 2026-12-01\n',
            'source = "nvidia-t4"\n',
            "gpus.toml [t4-16gb] memory_gib: has no `checked` date",
            id="missing date",
        ),
        pytest.param(
            "gpus.toml",
            "fp16_dense_tflops = 65\n",
            "fp16_dense_tflops = -65\n",
            "gpus.toml [t4-16gb] fp16_dense_tflops: -65 TFLOPS is outside 5..6000",
            id="negative figure",
        ),
        pytest.param(
            "gpus.toml",
            "fp16_dense_tflops = 65\n",
            "fp16_dense_tflops = 65e12\n",
            "is it the unit the key's name says, dense, and per GPU?",
            id="FLOP/s where TFLOPS belong",
        ),
        pytest.param(
            "gpus.toml",
            "fp16_dense_tflops = 65\n",
            "fp16_dense_tflops = nan\n",
            "gpus.toml [t4-16gb] fp16_dense_tflops: nan TFLOPS is outside",
            id="not a number",
        ),
        pytest.param(
            "gpus.toml",
            "fp16_dense_tflops = 65\n",
            "",
            "gpus.toml [t4-16gb] fp16_dense_tflops: is missing; where unknown write { reason = ... }",
            id="missing figure",
        ),
        pytest.param(
            "gpus.toml",
            "fp16_dense_tflops = 65\n",
            "fp16_dense_tflops = {}\n",
            "gpus.toml [t4-16gb] fp16_dense_tflops: has no value, so it needs a `reason`",
            id="unknown without reason",
        ),
        pytest.param(
            "gpus.toml",
            "fp16_dense_tflops = 65\n",
            'fp16_dense_tflops = { value = 65, source = "assumption" }\n',
            "an assumption needs a `note` that says why",
            id="guess without note",
        ),
        pytest.param(
            "gpus.toml",
            "fp16_dense_tflops = 65\n",
            "fp16_dense_tflops = 65\nfp16_tflops = 65\n",
            '"fp16_tflops" is not in the schema; did you mean "fp16_dense_tflops"?',
            id="stray key",
        ),
        pytest.param(
            "gpus.toml",
            "peer_to_peer = { value = true",
            "peer_to_peer = { value = 1",
            "peer_to_peer: must be true or false",
            id="a number where yes or no belongs",
        ),
        pytest.param(
            "gpus.toml",
            'form_factor = "sxm"',
            'form_factor = "SXM2"',
            '"SXM2" is none of pcie, sxm, nvl, oam',
            id="unknown form factor",
        ),
        pytest.param(
            "gpus.toml",
            'native_dtypes = ["fp32"]',
            'native_dtypes = ["fp32", "bf16"]',
            "native_dtypes: names bf16, whose rate is not given",
            id="native type without a rate",
        ),
        pytest.param(
            "gpus.toml",
            'aliases = ["T4",',
            'aliases = ["T4", "RTX 4090",',
            'aliases: "RTX 4090" already names t4-16gb',
            id="duplicate alias",
        ),
        pytest.param(
            "instances.toml",
            'aliases = ["gpu_1x_a10"]',
            'aliases = ["gpu_1x_a10", "RTX 4090"]',
            'aliases: "rtx-4090" names both a gpu and an instance',
            id="one name for a GPU and an instance",
        ),
        pytest.param(
            "names.toml",
            '"A100 SXM" =',
            '"RTX 4090" = ["t4-16gb", "l4-24gb"]\n"A100 SXM" =',
            "names.toml [ambiguous] RTX 4090: already names rtx-4090-24gb",
            id="ambiguous and an alias at once",
        ),
        pytest.param(
            "names.toml",
            '"4GB GPU" =',
            '"RTX 4090" = "nonsense"\n"4GB GPU" =',
            "names.toml [not_a_card] RTX 4090: this label names a card",
            id="a card among those that are none",
        ),
        pytest.param(
            "instances.toml",
            'gpu = "a100-sxm4-40gb"',
            'gpu = "a100-sxm4-41gb"',
            '[p4d.24xlarge] gpu: "a100-sxm4-41gb" is not in gpus.toml; did you mean "a100-sxm4-40gb"',
            id="instance with an unknown GPU",
        ),
        pytest.param(
            "instances.toml",
            '"p3dn.24xlarge"',
            '"p3.2xlarge"',
            "instances.toml [aws-p3dn] p3.2xlarge: this instance is already defined",
            id="instance defined twice",
        ),
        pytest.param(
            "instances.toml",
            'link = "nvswitch-a100"',
            'link = "nvswitch"',
            '[p4d.24xlarge] link: "nvswitch" is none of nvswitch-b200',
            id="unknown link class",
        ),
        pytest.param(
            "rigs.toml",
            "psu-1600w = 1",
            "psu-160w = 1",
            '[rig-1x-rtx-4090] parts.psu-160w: "psu-160w" is not in rigs.toml [parts] or gpus.toml; '
            'did you mean "psu-1600w"?',
            id="unknown rig part",
        ),
        pytest.param(
            "rigs.toml",
            "rtx-4090-24gb = 8",
            "rtx-4090-24gb = 7",
            "rigs.toml [rig-8x-rtx-4090] parts: must hold 8 x rtx-4090-24gb, as gpu_count says",
            id="bill of materials without its cards",
        ),
        pytest.param(
            "rigs.toml",
            "psu-2000w = 3",
            "psu-2000w = 2",
            "[rig-8x-rtx-4090] parts: its power supplies deliver 4000 W, too little for a load of 4000 W",
            id="too few power supplies",
        ),
        pytest.param(
            "sources.toml",
            "[nvidia-t4]\ntitle =",
            "[nvidia-t4]\nname =",
            "sources.toml [nvidia-t4] title: a text is required here",
            id="source without title",
        ),
        pytest.param("gpus.toml", "[t4-16gb]", "[t4-16gb", "gpus.toml: not valid TOML", id="broken file"),
    ],
)
def test_a_slip_is_refused_with_file_table_and_key(
    edit: Edit, file: str, old: str, new: str, message: str
) -> None:
    with pytest.raises(BadData, match=re.escape(message)):
        read_catalogue(edit(file, old, new))


def test_a_table_default_is_overridden_by_the_figure(edit: Edit) -> None:
    folder = edit(
        "gpus.toml",
        "fp16_dense_tflops = 65\n",
        'fp16_dense_tflops = { value = 64, source = "nvidia-v100", checked = 2027-01-02, note = "why" }\n',
    )
    figures = read_catalogue(folder)["gpus"]["t4-16gb"]["figures"]
    assert figures["fp16_dense_tflops"] == [64.0, "nvidia-v100", "2027-01-02", None, "why"]
    assert figures["fp32_dense_tflops"][1:3] == ["nvidia-t4", "2026-12-01"]


def test_a_size_overrides_its_family(edit: Edit) -> None:
    tables = read_catalogue(edit("instances.toml", "# --- Amazon EC2", "# ---"))
    p5 = tables["instances"]["p5.4xlarge"]
    assert (p5["network"], p5["link"]) == ("efa", "none")
    assert p5["figures"]["vcpus"][1] == "aws-p5"
    assert tables["instances"]["p5.48xlarge"]["figures"]["vcpus"][1] == "aws-price-list-2026-09-10"


def test_idle_above_load_is_refused(edit: Edit) -> None:
    folder = edit("rigs.toml", "idle_watts = { value = 75,", "idle_watts = { value = 750,")
    with pytest.raises(BadData, match=re.escape("[rig-1x-rtx-4090] idle_watts: must be below load_watts")):
        read_catalogue(folder)


def test_every_source_is_used_and_every_family_has_sizes() -> None:
    tables = read_catalogue(DATA)
    figures = [
        figure
        for kind in ("gpus", "instances", "rigs")
        for record in tables[kind].values()
        for figure in record["figures"].values()
    ]
    used = {figure[1] for figure in figures}
    used |= {part["rated_watts"][1] for part in tables["parts"].values() if "rated_watts" in part}
    assert set(tables["sources"]) == used
