"""Cost and capacity planner for PyTorch training."""
