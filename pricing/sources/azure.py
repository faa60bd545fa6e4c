"""The sources of Microsoft Azure; importing them registers them."""
