"""The sources of Google Cloud; importing them registers them."""

from . import gcp_catalog as gcp_catalog
