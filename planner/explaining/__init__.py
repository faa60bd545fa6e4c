"""Why a kept plan is what it is: which limit binds, what each is worth, and which inputs matter most.

    plan_file.read_document → limits (solved again, one limit moved at a time) → tornado (the plan kept)

`planner/explain.py` takes one option's cost apart; this package explains a decision.
"""
