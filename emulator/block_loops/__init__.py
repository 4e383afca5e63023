"""Makes loops of a block's threads: call graph, uniformity, fission at barriers, vector groups."""
