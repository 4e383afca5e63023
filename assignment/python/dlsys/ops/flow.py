"""What changes how gradients flow, and not the value."""

import numpy as np

from .base import TensorOp


class StopGradientOp(TensorOp):
    """x, whose gradient is taken as zero."""

    keeps_dtype = True
    label = "StopGradient({})"
    elementwise = True
    samples = (((3, 4),),)
    labels = (0,)

    def __call__(self, x):
        return TensorOp.__call__(self, x)

    def forward(self, node, x):
        return np.array(x)

    def lower(self, node, build, x):
        return x

    def gradient(self, node, grad):
        return self.no_gradient(node)


stop_gradient_op = StopGradientOp()
