"""The version, where it can be read without importing anything (a test compares it with the package's)."""

VERSION = "0.1.0"
