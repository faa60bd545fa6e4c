"""The sources of Amazon Web Services; importing them registers them."""

from . import aws_offer_file as aws_offer_file
from . import aws_price_list as aws_price_list
