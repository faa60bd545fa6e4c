"""The sources of Google Cloud; importing them registers them."""
