"""Pictures as SVG, of what others know: kernels in time, buffers in memory, nodes of a graph.

Start at svg.py. timeline.py, arena.py, graph.py and curves.py draw one kind of picture each;
layers.py finds where the nodes of a graph go. Nothing here knows of steps or ops.
"""
