"""EC2 offer files of real shape, made from rows: as CSV with its preamble, and as JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping

# The header of a real file, cut down to the columns that hold something for instances.
COLUMNS = (
    "SKU", "OfferTermCode", "RateCode", "TermType", "PriceDescription", "EffectiveDate", "StartingRange",
    "EndingRange", "Unit", "PricePerUnit", "Currency", "RelatedTo", "LeaseContractLength", "PurchaseOption",
    "OfferingClass", "Product Family", "serviceCode", "Location", "Location Type", "Instance Type",
    "Current Generation", "Instance Family", "vCPU", "Physical Processor", "Clock Speed", "Memory", "Storage",
    "Network Performance", "Processor Architecture", "Tenancy", "Operating System", "License Model",
    "usageType", "operation", "CapacityStatus", "Dedicated EBS Throughput", "ECU",
    "Enhanced Networking Supported", "GPU",
    "GPU Memory", "Intel AVX Available", "Intel AVX2 Available", "Intel Turbo Available", "MarketOption",
    "Normalization Size Factor", "Pre Installed S/W", "Processor Features", "Region Code", "serviceName",
)  # fmt: skip
PUBLISHED = "2026-09-10T19:55:14Z"
ROW = {
    "SKU": "H7NGEAC6UEHNTKSJ",
    "OfferTermCode": "JRTCKXETXF",
    "RateCode": "H7NGEAC6UEHNTKSJ.JRTCKXETXF.6YS6EN2CT7",
    "TermType": "OnDemand",
    "PriceDescription": "$21.957642 per On Demand Linux p4d.24xlarge Instance Hour",
    "EffectiveDate": "2026-09-01",
    "StartingRange": "0",
    "EndingRange": "Inf",
    "Unit": "Hrs",
    "PricePerUnit": "21.9576420000",
    "Currency": "USD",
    "Product Family": "Compute Instance",
    "serviceCode": "AmazonEC2",
    "Location": "US East (N. Virginia)",
    "Location Type": "AWS Region",
    "Instance Type": "p4d.24xlarge",
    "Current Generation": "Yes",
    "Instance Family": "GPU instance",
    "vCPU": "96",
    "Physical Processor": "Intel Xeon Platinum 8275L",
    "Clock Speed": "3 GHz",
    "Memory": "1152 GiB",
    "Storage": "8 x 1000 SSD",
    "Network Performance": "400 Gigabit",
    "Processor Architecture": "64-bit",
    "Tenancy": "Shared",
    "Operating System": "Linux",
    "License Model": "No License required",
    "usageType": "BoxUsage:p4d.24xlarge",
    "operation": "RunInstances",
    "CapacityStatus": "Used",
    "Dedicated EBS Throughput": "19000 Mbps",
    "ECU": "345",
    "Enhanced Networking Supported": "No",
    "GPU": "8",
    "GPU Memory": "320 GB HBM2",
    "Intel AVX Available": "Yes",
    "MarketOption": "OnDemand",
    "Normalization Size Factor": "192",
    "Pre Installed S/W": "NA",
    "Processor Features": "Intel AVX; Intel AVX2; Intel AVX512; Intel Turbo",
    "Region Code": "us-east-1",
    "serviceName": "Amazon Elastic Compute Cloud",
}
DISCLAIMER = (
    "This pricing list is for informational purposes only. All prices are subject to the additional terms "
    "included in the pricing pages on http://aws.amazon.com. All Free Tier prices are also subject to the "
    "terms included at https://aws.amazon.com/free/"
)


def row(sku: str, price: str, **changed: str) -> dict[str, str]:
    """A row of ROW's type with the named columns changed; spaces of a column's name as underscores."""
    named = {name.replace("_", " "): value for name, value in changed.items()}
    unknown = set(named) - set(COLUMNS)
    assert not unknown, unknown
    code = named.get("OfferTermCode", "JRTCKXETXF")
    return {**ROW, "SKU": sku, "PricePerUnit": price, "RateCode": f"{sku}.{code}.6YS6EN2CT7", **named}


def as_csv(rows: Iterable[Mapping[str, str]]) -> bytes:
    """The rows as an offer file in CSV."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(["FormatVersion", "v1.0"])
    writer.writerow(["Disclaimer", DISCLAIMER])
    writer.writerow(["Publication Date", PUBLISHED])
    writer.writerow(["Version", "20260910195514"])
    writer.writerow(["OfferCode", "AmazonEC2"])
    writer.writerow(COLUMNS)
    writer.writerows([each.get(name, "") for name in COLUMNS] for each in rows)
    return text.getvalue().encode()


_TERM_COLUMNS = set(COLUMNS[: COLUMNS.index("Product Family")])
_JSON_NAMES = {
    "Pre Installed S/W": "preInstalledSw", "CapacityStatus": "capacitystatus", "MarketOption": "marketoption",
    "vCPU": "vcpu", "GPU": "gpu",
}  # fmt: skip


def as_json(rows: Iterable[Mapping[str, str]]) -> bytes:
    """The rows as an offer file in JSON, indented as the real ones are."""
    products: dict[str, object] = {}
    terms: dict[str, dict[str, dict[str, dict[str, object]]]] = {"OnDemand": {}, "Reserved": {}}
    for each in rows:
        sku, code = each["SKU"], f"{each['SKU']}.{each['OfferTermCode']}"
        attributes = {
            _JSON_NAMES.get(name, name[0].lower() + name[1:].replace(" ", "")): value
            for name, value in each.items()
            if value and name not in _TERM_COLUMNS and name != "Product Family"
        }
        products[sku] = {"sku": sku, "productFamily": each["Product Family"], "attributes": attributes}
        term = terms[each["TermType"]].setdefault(sku, {}).setdefault(
            code,
            {
                "offerTermCode": each["OfferTermCode"],
                "sku": sku,
                "effectiveDate": "2026-09-01T00:00:00Z",
                "priceDimensions": {},
                "termAttributes": {
                    "LeaseContractLength": each.get("LeaseContractLength", ""),
                    "PurchaseOption": each.get("PurchaseOption", ""),
                    "OfferingClass": each.get("OfferingClass", ""),
                },
            },
        )  # fmt: skip
        dimensions = term["priceDimensions"]
        assert isinstance(dimensions, dict)
        dimensions[each["RateCode"]] = {
            "rateCode": each["RateCode"],
            "description": each["PriceDescription"],
            "beginRange": "0",
            "endRange": "Inf",
            "unit": each["Unit"],
            "pricePerUnit": {each["Currency"]: each["PricePerUnit"]},
            "appliesTo": [],
        }
    whole = {
        "formatVersion": "v1.0",
        "disclaimer": DISCLAIMER,
        "offerCode": "AmazonEC2",
        "version": "20260910195514",
        "publicationDate": PUBLISHED,
        "products": products,
        "terms": terms,
        "attributesList": {},
    }
    return json.dumps(whole, indent=2).encode()


def crowd(number: int) -> Iterable[dict[str, str]]:
    """Rows of other types, systems and tenancies, as most of a real file is."""
    systems = ("Linux", "Windows", "RHEL", "SUSE")
    tenancies = ("Shared", "Dedicated", "Host")
    states = ("Used", "UnusedCapacityReservation", "AllocatedCapacityReservation")
    for n in range(number):
        yield row(
            f"SKU{n:013d}",
            f"{n % 97 + 0.5:.10f}",
            Instance_Type=f"m{n % 7}.{n % 40}xlarge",
            Operating_System=systems[n % 4],
            Tenancy=tenancies[n % 3],
            CapacityStatus=states[n // 4 % 3],
            GPU="",
            OfferTermCode="JRTCKXETXF",
        )


def grown(body: bytes, size_bytes: int) -> bytes:
    """The same offer file with rows of another product in front, until it has about that size."""
    filler = list(crowd(2))[1]  # of dedicated tenancy, as half of a real file
    if body.startswith(b"{"):
        mark = b'"products": {'
        product = json.loads(as_json([filler]))["products"][filler["SKU"]]
        line = f'"{filler["SKU"]}": {json.dumps(product, indent=2)},\n'.encode()
    else:
        mark = b'"serviceName"\n'
        line = as_csv([filler]).splitlines(keepends=True)[-1]
    before, found, after = body.partition(mark)
    assert found
    return b"".join([before, mark, line * (size_bytes // len(line)), after])
