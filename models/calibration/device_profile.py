"""DeviceProfile: what one device achieves, as a file. Raw points, the curves through them, how it was done.

The points are kept so that curves can be fitted again without the device. JSON, schema version first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import BadData

SCHEMA_VERSION = 1
KIND = "device_profile"


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one call over all visits. spread: (p90 - p10) / median."""

    median: float
    low: float
    p90: float
    spread: float
    count: int


@dataclass(frozen=True, slots=True)
class Point:
    """One case as measured. flops [FLOP]; bytes [B], each tensor once; extra: features of special curves."""

    key: str
    suite: str
    op: str
    op_class: str
    dtype: str
    layout: str
    shapes: tuple[tuple[int, ...], ...]
    flops: float
    bytes_read: float
    bytes_written: float
    hot: Timing
    cold: Timing | None = None
    extra: Mapping[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Between hot and cold: in a step the weights come from memory, the activations from a cache."""
        return self.hot.median if self.cold is None else (self.hot.median + self.cold.median) / 2

    @property
    def bytes(self) -> float:
        return self.bytes_read + self.bytes_written


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """One device at one time.

    device, software, protocol: what was measured on, with what, how. fits: curve name -> its numbers
    (device_curves.py). anchors: real steps, measured and priced. quality: noise and warnings.
    origin: "measured here" and when.
    """

    device: Mapping[str, Any]
    software: Mapping[str, Any]
    protocol: Mapping[str, Any]
    points: tuple[Point, ...]
    fits: Mapping[str, Any] = field(default_factory=dict)
    anchors: tuple[Mapping[str, Any], ...] = ()
    quality: Mapping[str, Any] = field(default_factory=dict)
    origin: Mapping[str, Any] = field(default_factory=dict)

    def with_fits(self, fits: Mapping[str, Any]) -> DeviceProfile:
        return replace(self, fits=fits)


def to_json(profile: DeviceProfile) -> dict[str, Any]:
    return {"schema_version": SCHEMA_VERSION, "kind": KIND, **asdict(profile)}


def from_json(body: Mapping[str, Any], where: str) -> DeviceProfile:
    """Inverse of `to_json`. Raises BadData naming `where` and what is wrong."""
    if not isinstance(body, Mapping) or body.get("kind") != KIND or "schema_version" not in body:
        raise BadData(f"{where}: not a device profile; make one with: planner calibrate -o {where}")
    if body["schema_version"] != SCHEMA_VERSION:
        raise BadData(
            f"{where}: schema_version {body['schema_version']}, this planner reads {SCHEMA_VERSION}; "
            "calibrate again"
        )
    try:
        return DeviceProfile(
            device=body["device"],
            software=body["software"],
            protocol=body["protocol"],
            points=tuple(_point(point) for point in body["points"]),
            fits=body["fits"],
            anchors=tuple(body["anchors"]),
            quality=body["quality"],
            origin=body["origin"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadData(f"{where}: not a device profile ({type(error).__name__}: {error})") from error


def _point(body: Mapping[str, Any]) -> Point:
    values = dict(body)
    values["shapes"] = tuple(tuple(shape) for shape in values["shapes"])
    values["hot"] = Timing(**values["hot"])
    values["cold"] = None if values["cold"] is None else Timing(**values["cold"])
    return Point(**values)


def write(profile: DeviceProfile, path: Path) -> None:
    """Write the file whole or not at all."""
    partial = path.with_name(path.name + ".writing")
    partial.write_text(json.dumps(to_json(profile), indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


def read(path: Path) -> DeviceProfile:
    """Read a profile. Raises BadData where it is missing or broken."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadData(
            f"{path}: no such device profile; make one with: planner calibrate -o {path}"
        ) from error
    except (OSError, ValueError) as error:
        raise BadData(f"{path}: not readable as JSON ({error})") from error
    return from_json(body, str(path))
