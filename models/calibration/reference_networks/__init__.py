"""Networks of published benchmarks that `transformers` has no class for, as plain modules.

They exist to be traced once, offline, for the rows of throughput.csv: importing one needs torch, planning
imports none. Each follows the paper named in its docstring; parameter counts are held to the published ones.
"""
