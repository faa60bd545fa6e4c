"""The sources of Microsoft Azure; importing them registers them."""

from . import azure_retail as azure_retail
