"""What the checked build adds to a source.

It imports block_loops and cuda_source. Start reading in quick_loops.py.
"""
