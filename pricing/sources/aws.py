"""The sources of Amazon Web Services; importing them registers them."""

from . import aws_price_list as aws_price_list
