"""Networks by their names: `models.resnet14()`, `models.MLP((784, 100, 10))`."""

from .mlp import MLP as MLP
from .resnet import ResNet as ResNet
from .resnet import resnet14 as resnet14
from .resnet import resnet18 as resnet18
from .resnet import resnet20 as resnet20
from .resnet import simple_resnet as simple_resnet
from .vgg import VGG as VGG
from .vgg import simple_vgg as simple_vgg
from .vgg import vgg11 as vgg11
