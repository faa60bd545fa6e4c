"""Plain modules, for what `transformers` has no class of.

Each is a `TrainableModule`: it makes its own inputs and takes its own loss. Letters in shapes: B batch,
S sequence, D width, H heads, V vocabulary.
"""
