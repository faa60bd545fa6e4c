"""The forms an answer takes: a table for a terminal; CSV, Markdown, JSON lines and HTML for the rest.

Reports read the answer's JSON document, never the objects behind it, so a plan read back from a file
prints the same.
"""
