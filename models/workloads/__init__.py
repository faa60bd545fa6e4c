"""What is trained: named workloads, any transformers config.json, any factory of yours, and their traces.

To add a workload, write `data/<id>.toml` beside the others (what `records.py` says a record holds), then

    python -m planner.models.workloads.compile_zoo            # the data files into zoo.json, which is read
    python -m planner.models.workloads.make_traces <id>       # its traces and summaries into traces/<id>/

and the tests hold its count, its names and its traces to what the files say.
"""
