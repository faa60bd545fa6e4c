"""Three rules that anyone could apply in a spreadsheet, to set beside the model on the same rows.

    flops_ratio      the same recipe and workload measured on another card, times the ratio of datasheet peaks
    bandwidth_ratio  the same, times the ratio of memory bandwidths
    roofline         the larger of FLOPs / datasheet peak and bytes / datasheet bandwidth

The first two use the nearest other card by both ratios, and are silent where the recipe ran on no other.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .dataset import Table
from .profile import Floats


def predictions(target: Table) -> Mapping[str, Floats]:
    """Rule -> log step seconds of each row; NaN where the rule has nothing to go by."""
    log_peak, log_bandwidth = np.log(target.peak_flops), np.log(target.sheet.bandwidth)
    per_sample = target.log_step - np.log(target.samples / target.gpu_count)
    near = _nearest(target, log_peak, log_bandwidth)
    found = {}
    for name, log_rate in (("flops_ratio", log_peak), ("bandwidth_ratio", log_bandwidth)):
        scaled = np.full(len(target), np.nan)
        has = near >= 0
        other = near[has]
        scaled[has] = (
            per_sample[other]
            + np.log(target.samples / target.gpu_count)[has]
            + log_rate[other]
            - log_rate[has]
        )
        found[name] = scaled
    flops, moved = target.flops.sum(1), target.bytes.sum(1)
    found["roofline"] = np.log(np.maximum(flops / target.peak_flops, moved / target.sheet.bandwidth))
    return found


def _nearest(target: Table, log_peak: Floats, log_bandwidth: Floats) -> np.ndarray:
    """Index of the measured row of the same recipe on the most alike other card; -1 where there is none."""
    nearest = np.full(len(target), -1)
    usable = np.isfinite(target.log_step)
    for i in range(len(target)):
        same = (
            usable
            & (target.labels["recipe_model_size"] == target.labels["recipe_model_size"][i])
            & (target.gpu_count == target.gpu_count[i])
            & (target.labels["gpu"] != target.labels["gpu"][i])
        )
        if same.any():
            gap = np.abs(log_peak - log_peak[i]) + np.abs(log_bandwidth - log_bandwidth[i])
            nearest[i] = int(np.argmin(np.where(same, gap, np.inf)))
    return nearest
