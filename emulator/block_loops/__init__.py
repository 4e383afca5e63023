"""Makes loops of a block's threads: call graph, uniformity, fission at barriers, vector groups.

It imports cuda_source. Start reading in loops.py.
"""
