"""Charts of a plan, each a Vega-Lite specification: plain values that a browser or vl-convert draws.

Every chart is a function of plain rows (rows.py makes them of a plan's document) in a file of its own.
Colours are those of Okabe and Ito; nothing is told by colour alone: shape, dash, order or text says it too.
"""
