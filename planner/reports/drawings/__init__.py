"""Charts as SVG text: for pages that run no script, follow the reader's light or dark, and link each point.

Colours and fonts are left to the style sheet that stands around them (classes, no style attributes), so the
same drawing prints, inverts and obeys a strict content security policy. A drawing is a few kB and takes
well under a millisecond; charts to hand round as files are Altair's business (planner/reports/charts).
"""
