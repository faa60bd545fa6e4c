"""List prices of EC2 instances from the public offer files: large, and free of credentials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from . import FetchContext, source
from .aws_offer_csv import read_csv
from .aws_offer_json import read_json
from .aws_price_list import DEFAULT_REGIONS
from .aws_rows import Origin, Rows
from .aws_shapes import REGION, TYPE, known_gpus
from .errors import SourceUnavailable
from .http import Http, without_query
from .page import ParseResult, RawPage, Tally

NAME = "aws-offer-file"
_ADDRESS = "https://pricing.us-east-1.amazonaws.com"
# The file of one region is a few hundred megabytes, and grows by a fifth a year.
_LARGEST_FILE_BYTES = 4 * 2**30


@source(
    NAME,
    provider="aws",
    needs="room for one offer file, and minutes rather than seconds to load it",
    default=False,
)
class AwsOfferFile:
    """On-demand and reserved list prices of EC2 from the offer file of a region, without credentials.

    Regions: us-east-1 unless others are asked for. Needs context.directory. AWS keeps older lists: the
    setting "version" names one, say 20250601000000, and its offers are dated by the file.
    """

    def fetch(self, context: FetchContext) -> Iterator[RawPage]:
        """One file a region, as CSV."""
        if context.directory is None:
            raise SourceUnavailable("a directory to keep the offer file in while it is read")
        base = context.base_urls.get(NAME, _ADDRESS)
        version = context.settings.get(NAME, {}).get("version", "current")
        types = ",".join(context.types_of(TYPE, known_gpus()))
        with Http(context) as http:
            for region in context.regions_of(REGION, DEFAULT_REGIONS):
                url = f"{base}/offers/v1.0/aws/AmazonEC2/{version}/{region}/index.csv"
                path = context.directory / f"{NAME}-{region}.csv"
                http.download(url, path, limit_bytes=_LARGEST_FILE_BYTES)
                request = {"region": region, "os": ",".join(context.operating_systems), "types": types}
                yield RawPage(path=path, ref=without_query(url), request=request)

    def parse(
        self, pages: Iterable[RawPage], *, fetched_at: datetime, observed_at: datetime | None = None
    ) -> ParseResult:
        """The one row left per type, region, system and contract. Raises AmbiguousRows, BadAnswer.

        Without observed_at the date is that of the publication, so the same file read twice says the same.
        A page's request may name "types" and "os", with commas; without, all GPU types that we know, and
        Linux.
        """
        tally = Tally(NAME)
        offers = []
        for page in pages:
            asked = page.request
            types = frozenset(asked["types"].split(",")) if "types" in asked else frozenset(known_gpus())
            rows = Rows(tally, types=types, systems=asked.get("os", "linux").split(","))
            with page.open() as file:
                beginning = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
                file.seek(0)
                read = read_json if beginning.startswith(b"{") else read_csv
                listed = read(file, page.ref, tally, rows.keeps)
                observed = observed_at or listed.published or fetched_at
                origin = Origin(NAME, page.ref, page.sha256, observed, fetched_at)
                for each in listed.rows:
                    for term in each.terms:
                        rows.add(each.product, term, origin)
            offers += rows.offers()
        return tally.result(offers)
