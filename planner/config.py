"""Settings: flags first, then the environment, then the user's file. Each value remembers where it came from.

The file is `config.toml` in the user's configuration folder (`$XDG_CONFIG_HOME/planner`, by default
`~/.config/planner`), the environment's names are PLANNER_ and the key in capitals. Keys are the flags of
`planner optimize` with underscores:

    own = ["rig-4x-rtx-4090"]
    electricity_price = 0.32
    spot = false
    store_url = "postgresql://prices.example/planner"
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import UsageError
from planner.models.errors import nearest_names
from planner.request import OptimizeRequest, request_keys

STORE_KEY = "store_url"
"""The one setting that is not about a plan: which price store to open."""

# Names in our prefix that other parts of the program read.
_NOT_SETTINGS = frozenset({"PLANNER_DEBUG", "PLANNER_RECORDED_DATA"})


@dataclass(frozen=True, slots=True)
class Setting:
    """One value in force. origin: "--flag", "PLANNER_NAME", "FILE" or "default"."""

    key: str
    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class Layer:
    """Settings of one origin, checked; `where(key)` says where a reader finds one of them."""

    kind: str
    values: Mapping[str, Any]
    file: Path | None = None

    def where(self, key: str) -> str:
        """The place to look at when the value of `key` is wrong."""
        if self.kind == "flags":
            return f"--{key.replace('_', '-')}"
        return f"PLANNER_{key.upper()}" if self.kind == "environment" else f'{self.file}, key "{key}"'

    def named(self, line: str) -> str:
        """A complaint "key = value: reason" with the place in front."""
        match = re.match(r"(\w+) = (.*)", line, re.DOTALL)
        if not match:
            return line if self.kind == "flags" else f"{self.file or self.kind}: {line}"
        return f"{self.where(match[1])} {'' if self.kind == 'flags' else '= '}{match[2]}"


def config_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the user's settings are looked for."""
    from platformdirs import user_config_path

    base = environ.get("XDG_CONFIG_HOME")
    return (Path(base) / "planner" if base else user_config_path("planner")) / "config.toml"


def keys() -> tuple[str, ...]:
    """Every key that may be set: those of a request, and the store."""
    return (*request_keys(), STORE_KEY)


def layers(flags: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> tuple[Layer, ...]:
    """The three origins, strongest first, each checked on its own so that a complaint names its place.

    flags: key -> value as typed; None and empty lists mean "not given".
    Raises UsageError for an unknown key, naming the nearest, and for a value that cannot be used.
    """
    typed = {key: value for key, value in flags.items() if value is not None and value != []}
    found = [Layer("flags", typed), Layer("environment", _from_environment(environ))]
    file = config_file(environ)
    found.append(Layer("file", _from_file(file), file))
    for layer in found:
        _check(layer)
    return tuple(found)


def merged(found: tuple[Layer, ...]) -> dict[str, Setting]:
    """Key -> the strongest setting. Epochs and tokens are one question: a stronger answer silences both."""
    result: dict[str, Setting] = {}
    for layer in found:
        answered = {"epochs", "tokens"} & result.keys()
        for key, value in layer.values.items():
            if key in result or (answered and key in ("epochs", "tokens")):
                continue
            origin = str(layer.file) if layer.kind == "file" else layer.where(key)
            result[key] = Setting(key, value, origin)
    return result


def in_force(environ: Mapping[str, str] = os.environ) -> tuple[Setting, ...]:
    """Every setting as a plan without flags would use it, defaults included, in the order of `keys()`."""
    given = merged(layers({}, environ))
    defaults = OptimizeRequest(model="any")
    return tuple(
        given.get(key) or Setting(key, getattr(defaults, key, None), "default")
        for key in keys()
        if key != "model" or key in given
    )


def request_values(settings: Mapping[str, Setting]) -> dict[str, Any]:
    """The settings as `OptimizeRequest.of` takes them."""
    return {key: setting.value for key, setting in settings.items() if key != STORE_KEY}


def use_store(settings: Mapping[str, Setting] | None = None) -> None:
    """Let the file name the price store where the environment does not: both are then read the same way."""
    setting = (merged(layers({})) if settings is None else settings).get(STORE_KEY)
    if setting is not None:
        os.environ.setdefault("PLANNER_STORE_URL", str(setting.value))


def _check(layer: Layer) -> None:
    values = {key: value for key, value in layer.values.items() if key != STORE_KEY}
    try:
        OptimizeRequest.of(**{"model": "any", **values})
    except UsageError as error:
        lines = "\n".join(layer.named(line) for line in str(error).splitlines())
        raise UsageError(lines, error.key) from error


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    known = {f"PLANNER_{key.upper()}": key for key in keys()}
    for name in sorted(environ):
        if name.startswith("PLANNER_") and name not in _NOT_SETTINGS and environ[name] != "":
            if name not in known:
                raise UsageError(f"no setting {name} (environment).{_nearest(name, known)}")
            key = known[name]
            values[key] = environ[name].split(",") if key in ("fx", "assume") else environ[name]
    return values


def _from_file(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):  # HOME=/dev/null is how a service says it has none
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read ({error})") from error
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: not valid TOML: {error}") from error
    known = keys()
    for key in list(values):
        plain = key.replace("-", "_")
        if plain not in known:
            raise UsageError(f'{file}: no key "{key}".{_nearest(plain, known)}')
        values[plain] = values.pop(key)
    return values


def _nearest(name: str, known: Any) -> str:
    near = nearest_names(name, known, limit=1)
    return f' Did you mean "{near[0]}"?' if near else " All keys: planner config show"
