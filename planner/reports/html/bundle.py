"""Vega, Vega-Lite and Vega-Embed as one script, from the installed vl-convert: nothing is downloaded."""

from __future__ import annotations

import functools

from planner.errors import UsageError

VEGA_LITE = "6.4"


@functools.cache
def vega_bundle() -> str:
    """The script, about 0.9 MB, that defines `vegaEmbed`. Raises UsageError where vl-convert is missing."""
    try:
        import vl_convert
    except ImportError as error:
        raise UsageError(
            "charts need vl-convert: pip install 'training-planner[reports]'", "reports"
        ) from error
    # Without a snippet the three libraries are put on `window`; the stub wants one, and "" leaves them out.
    script: str = vl_convert.javascript_bundle(vl_version=VEGA_LITE)  # type: ignore[call-arg]
    if "</script" in script.lower():
        raise AssertionError("the bundle would end its own script element")
    return script
