"""Torch microbenchmarks of the device at hand: one file per suite, registered where it is written.

    session.calibrate(...)  runs every suite and returns a device profile (calibration/device_profile.py)

Importing this package costs nothing: torch comes in when a suite is run.
"""
