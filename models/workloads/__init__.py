"""What is trained: named workloads, any transformers config.json, any factory of yours, and their traces."""
