"""From YAML to a checked schedule: bombs are met at the door, and every complaint names its place."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from planner.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

    from .file import ScheduleFile

MOST_BYTES = 1_000_000
_DEEPEST = 20
_MOST_COMPLAINTS = 8


def load(path: str | Path) -> dict[str, Any]:
    """The plain values of a YAML file. Raises UsageError."""
    file = Path(path)
    try:
        if file.stat().st_size > MOST_BYTES:
            raise UsageError(f"{file}: more than {MOST_BYTES:,} bytes; no schedule is so long", "schedule")
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror or error})", "schedule") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: is not UTF-8 text (byte {error.start})", "schedule") from error
    return parse(text, str(file))


def parse(text: str, name: str = "schedule") -> dict[str, Any]:
    """The plain values of YAML text. name: how complaints call it. Raises UsageError.

    Anchors are refused: ten of them can stand for a billion values. So are two equal keys, of which YAML
    would silently keep the last.
    """
    import yaml

    if len(text) > MOST_BYTES:
        raise UsageError(f"{name}: more than {MOST_BYTES:,} characters; no schedule is so long", "schedule")

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            event = self.peek_event()  # type: ignore[no-untyped-call]
            if isinstance(event, yaml.events.AliasEvent):
                raise _refusal("anchors are not allowed", event.start_mark)
            self.depth = getattr(self, "depth", 0) + 1
            if self.depth > _DEEPEST:
                raise _refusal("nested too deep", event.start_mark)
            try:
                return super().compose_node(parent, index)
            finally:
                self.depth -= 1

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen = set()
            for key, _ in node.value:
                if key.value in seen:
                    raise _refusal(f'the key "{key.value}" stands there twice', key.start_mark)
                seen.add(key.value)
            return super().construct_mapping(node, deep)

    try:
        found = Loader(text).get_single_data()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        said = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise UsageError(f"{name}{where}: does not read as YAML: {said}", "schedule") from error
    if not isinstance(found, dict):
        raise UsageError(f"{name}: a schedule holds keys and values; see: planner schedule init", "schedule")
    return found


def _refusal(what: str, mark: Any) -> Exception:
    from yaml.constructor import ConstructorError

    return ConstructorError(None, None, what, mark)


def checked(values: dict[str, Any], name: str = "schedule") -> ScheduleFile:
    """The values as a schedule. Raises UsageError with each complaint on a line of its own."""
    from pydantic import ValidationError

    from .file import ScheduleFile

    try:
        return ScheduleFile.model_validate(values)
    except ValidationError as error:
        told = list(complaints(error.errors(include_url=False), ScheduleFile))
        more = len(told) - _MOST_COMPLAINTS
        lines = [f"{name}: {line}" for line in told[:_MOST_COMPLAINTS]]
        if more > 0:
            lines.append(f"{name}: and {more} more")
        raise UsageError("\n".join(lines), "schedule") from error


def complaints(errors: Iterable[ErrorDetails], model: type[BaseModel]) -> Iterable[str]:
    """One line for each fault: where, what, and what is meant."""
    errors = list(errors)
    for error in errors:
        if error["type"] == "too_short" and any(
            other["loc"][: len(error["loc"])] == error["loc"] and other is not error for other in errors
        ):
            continue  # short only because its faulty parts were not counted
        place = _place(error["loc"])
        said = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
        if error["type"] == "extra_forbidden":
            yield f"{place}: no such key{_nearest(error['loc'], model)}"
        elif error["type"] == "missing":
            yield f"{place}: is needed"
        else:
            shown = str(error.get("input"))
            value = f" = {shown if len(shown) <= 60 else shown[:57] + '...'}" if error["loc"] else ""
            whole = isinstance(error.get("input"), dict | list | tuple)
            yield f"{place or 'the schedule'}{'' if whole else value}: {said}"


def _place(parts: tuple[int | str, ...]) -> str:
    """jobs[2].deadline"""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".")


def _nearest(parts: tuple[int | str, ...], model: type[BaseModel]) -> str:
    from planner.models.errors import nearest_names

    for part in parts[:-1]:
        if isinstance(part, str):
            model = _model_of(model.model_fields[part].annotation) or model
    known = sorted(model.model_fields)
    near = nearest_names(str(parts[-1]), known, limit=1)
    return f'; did you mean "{near[0]}"?' if near else f"; known: {', '.join(known)}"


def _model_of(annotation: Any) -> type[BaseModel] | None:
    """The part of the file that a field holds one or many of."""
    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_of(part))), None)
