"""Layers and modules: a network is an object that makes nodes, and names its parameters.

    nn.seed(0)
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(7200, 10))
    logits = net(images, train=True)
    grads = gradients(ops.cross_entropy(logits, labels), net.parameters())

Start at module.py. The initial values are in init.py; summary.py prints what a network has,
statistics.py says what its layers make of a batch.
"""

from .init import seed as seed
from .layers import AveragePool2d as AveragePool2d
from .layers import Conv2d as Conv2d
from .layers import Dropout as Dropout
from .layers import Flatten as Flatten
from .layers import Gelu as Gelu
from .layers import GlobalAveragePool2d as GlobalAveragePool2d
from .layers import Linear as Linear
from .layers import MaxPool2d as MaxPool2d
from .layers import ReLU as ReLU
from .layers import Sigmoid as Sigmoid
from .layers import Tanh as Tanh
from .module import Module as Module
from .module import Sequential as Sequential
from .module import l2 as l2
from .norm import BatchNorm2d as BatchNorm2d
from .norm import GroupNorm as GroupNorm
from .norm import LayerNorm as LayerNorm
from .precision import autocast as autocast
from .statistics import statistics as statistics
from .summary import summary as summary
from .weights import load as load
from .weights import save as save
