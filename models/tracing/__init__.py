"""One training step as data: traced on the meta device, priced and replayed anywhere."""
