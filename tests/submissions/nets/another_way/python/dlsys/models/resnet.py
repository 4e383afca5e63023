"""Residual networks (He et al., 2016), with the names of torchvision's."""

from dlsys import nn, ops
from dlsys.nn import init


def _conv(channels, filters, kernel, stride=1):
    """A convolution that keeps the size, but for the stride; what follows it has the bias."""
    weight = init.kaiming_normal(fan="out")
    return nn.Conv2d(channels, filters, kernel, stride, kernel // 2, bias=None, weight=weight)


class BasicBlock(nn.Module):
    """relu(x + two convolutions of x), each with a norm if there is one.

    Where the shape changes, x goes through a convolution of 1 x 1.
    """

    def __init__(self, channels, filters, stride, norm):
        """Its parts: conv1, bn1, conv2 and bn2, and `downsample`, a Sequential of a convolution
        and a norm; None is one that it does not have.

        Args:
            channels, filters: of the images before and after.
            stride: of the first convolution.
            norm: whether convolutions are followed by a norm of the batch.
        """
        branch = {"conv1": (channels, stride), "conv2": (filters, 1)}
        for number, (name, (before, step)) in enumerate(branch.items(), 1):
            setattr(self, name, _conv(before, filters, 3, step))
            setattr(self, "bn%d" % number, nn.BatchNorm2d(filters) if norm else None)
        if (channels, 1) == (filters, stride):
            self.downsample = None
        elif norm:
            self.downsample = nn.Sequential(
                _conv(channels, filters, 1, stride), nn.BatchNorm2d(filters)
            )
        else:
            self.downsample = nn.Sequential(_conv(channels, filters, 1, stride))

    def forward(self, x, train):
        """(N, channels, H, W) -> (N, filters, H / stride, W / stride), rounded up."""
        shortcut = x if self.downsample is None else self.downsample(x, train)
        x = self.conv1(x, train)
        if self.bn1 is not None:
            x = self.bn1(x, train)
        x = self.conv2(ops.relu(x), train)
        if self.bn2 is not None:
            x = self.bn2(x, train)
        return ops.relu(shortcut + x)


def _blocks(channels, filters, count, stride, norm):
    """The blocks of a stage, a list. The first one changes the shape.

    Args:
        channels, filters: before and after the stage.
        count: of blocks.
        stride: of the stage.
        norm: whether convolutions are followed by a norm of the batch.
    """
    blocks = []
    while len(blocks) < count:
        blocks.append(BasicBlock(channels, filters, stride, norm))
        channels, stride = filters, 1
    return blocks


def _maybe(module, x, train):
    """What a module makes of x; x itself where there is none."""
    return x if module is None else module(x, train)


class ResNet(nn.Module):
    """A convolution, stages of blocks, the mean of each plane, and a linear layer.

    Each stage but the first halves height and width.
    """

    def __init__(self, filters, blocks, classes=10, channels=3, norm=True, size=32):
        """
        Args:
            filters: of each stage.
            blocks: how many each stage has.
            classes, channels: numbers of the result and of the images.
            norm: whether convolutions are followed by a norm of the batch.
            size: of the images: from 64 on, they are made smaller by 4 at first.
        """
        self._is_large = size >= 64
        self.conv1 = _conv(channels, filters[0], *((7, 2) if self._is_large else (3, 1)))
        self.bn1 = nn.BatchNorm2d(filters[0]) if norm else None
        self.maxpool = nn.MaxPool2d(3, 2, 1) if self._is_large else None
        before, self._stages = filters[0], []
        for number, (width, count) in enumerate(zip(filters, blocks), 1):
            stage = _blocks(before, width, count, 2 if number > 1 else 1, norm)
            self._stages.append("layer%d" % number)
            setattr(self, self._stages[-1], nn.Sequential(*stage))
            before = width
        self.fc = nn.Linear(before, classes)

    def forward(self, x, train):
        """(N, channels, size, size) -> (N, classes)."""
        parts = [self.conv1, self.bn1, nn.ReLU(), self.maxpool]
        parts += [getattr(self, name) for name in self._stages]
        for part in (*parts, nn.GlobalAveragePool2d(), self.fc):
            x = _maybe(part, x, train)
        return x


def simple_resnet(stages=1, blocks=1, filters=16, classes=10, channels=3):
    """Without norms; each stage has twice the filters of that before."""
    widths = [filters << stage for stage in range(stages)]
    return ResNet(widths, [blocks] * stages, classes, channels, norm=False)


def resnet14(classes=10, channels=3):
    """For images of 32 x 32, without norms: 174,138 parameters of 10 classes."""
    return simple_resnet(3, 2, 16, classes, channels)


def resnet20(classes=10, channels=3):
    """For images of 32 x 32."""
    return ResNet((16, 32, 64), (3, 3, 3), classes, channels)


def resnet18(classes=10, channels=3, size=32):
    """For images of 32 x 32, or with size=224 of that; torchvision's weights fit the latter."""
    return ResNet((64, 128, 256, 512), (2, 2, 2, 2), classes, channels, size=size)
