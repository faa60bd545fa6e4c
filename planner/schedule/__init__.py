"""A project's whole training schedule: its file, the options of each job, and the plans of its front."""
