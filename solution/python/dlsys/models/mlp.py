"""Linear layers with relu between them."""

import itertools

from dlsys import nn, ops


class MLP(nn.Module):
    """A multi-layer perceptron; `sizes` are those of the input, of each hidden layer, the result's.

    Images are flattened first.
    """

    def __init__(self, sizes):
        self.layers = [nn.Linear(a, b) for a, b in itertools.pairwise(sizes)]

    def forward(self, x, train):
        """(N, ...) -> (N, last size)."""
        x = ops.flatten(x, start=1)
        for layer in self.layers[:-1]:
            x = ops.relu(layer(x, train))
        return self.layers[-1](x, train)
