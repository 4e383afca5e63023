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

#: Name -> a network for images of (channels, size, size) and so many classes.
BY_NAME = {
    "mlp": lambda shape, classes: MLP((shape[0] * shape[1] * shape[2], 100, classes)),
    "simple": lambda shape, classes: simple_resnet(1, 1, 16, classes, shape[0]),
    "resnet14": lambda shape, classes: resnet14(classes, shape[0]),
    "resnet20": lambda shape, classes: resnet20(classes, shape[0]),
    "resnet18": lambda shape, classes: resnet18(classes, shape[0], shape[1]),
    "vgg": lambda shape, classes: simple_vgg(classes, shape[0], shape[1]),
    "vgg11": lambda shape, classes: vgg11(classes, shape[0], shape[1]),
}
