"""The sources of Amazon Web Services; importing them registers them."""

from . import aws_capacity_blocks as aws_capacity_blocks
from . import aws_offer_file as aws_offer_file
from . import aws_price_list as aws_price_list
from . import aws_savings_plans as aws_savings_plans
from . import aws_spot as aws_spot
