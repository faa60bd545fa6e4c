"""What can go wrong between a seller's answer and an offer.

PricingError
└── SourceError            a source gave nothing; carries no secret, so it may be shown and logged
    ├── SourceUnavailable  it needs something that is not here (credentials, a package): skip it, go on
    ├── SourceFailed       the seller did not answer, or not in time
    ├── BadAnswer          it answered with what is not an answer (HTML, half a file, a repeated page)
    ├── AmbiguousRows      several rows are left where one is meant; names them instead of picking one
    ├── TooManyBadRows     more rows than the limit did not read: the format has changed
    ├── UnknownSource      no source of that name is registered
    └── DuplicateSource    two sources want one name
"""

from __future__ import annotations

from ..errors import PricingError


class SourceError(PricingError):
    """A price source gave nothing."""


class SourceUnavailable(SourceError):
    """The source needs something that is not here; the others go on without it.

    needs: what, in words the user can act on.
    """

    def __init__(self, needs: str) -> None:
        super().__init__(f"not available: needs {needs}")
        self.needs = needs


class SourceFailed(SourceError):
    """The seller did not answer, or not in time. Its stored prices stay, with their age."""


class BadAnswer(SourceError):
    """The seller's answer does not read."""


class AmbiguousRows(BadAnswer):
    """Several rows match where exactly one price is meant."""


class TooManyBadRows(BadAnswer):
    """So many rows did not read that the rest is not to be trusted."""


class UnknownSource(SourceError):
    """No source of that name."""


class DuplicateSource(SourceError):
    """Two sources under one name."""
