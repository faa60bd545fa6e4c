"""The subcommands of `planner report`, one module each; each registers itself on the app it is given."""
