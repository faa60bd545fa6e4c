"""The hardware catalogue: GPUs, cloud instances and rigs as dated, sourced facts."""
