"""Convolutions of 3 x 3 one after the other (Simonyan and Zisserman, 2015)."""

from dlsys import nn, ops

#: Filters of VGG-11's convolutions; 0 is a pooling.
_VGG11 = (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0)


class VGG(nn.Module):
    """Convolutions and pooling, then linear layers; the names are torchvision's."""

    def __init__(self, filters, widths, classes=10, channels=3, size=32, dropout=0.0):
        """
        Args:
            filters: of each convolution; 0 is a pooling that halves height and width.
            widths: of the linear layers before the last.
            classes, channels: numbers of the result and of the images.
            size: of the images.
            dropout: its rate behind each linear layer but the last.
        """
        parts = []
        for count in filters:
            if count:
                parts += [nn.Conv2d(channels, count, 3, padding=1), nn.ReLU()]
                channels = count
            else:
                parts.append(nn.MaxPool2d(2))
                size //= 2
        self.features = nn.Sequential(*parts)
        before, parts = channels * size * size, []
        for width in widths:
            parts += [nn.Linear(before, width), nn.ReLU(), nn.Dropout(dropout)]
            before = width
        self.classifier = nn.Sequential(*parts, nn.Linear(before, classes))

    def forward(self, x, train):
        """(N, channels, size, size) -> (N, classes)."""
        return self.classifier(ops.flatten(self.features(x, train), start=1), train)


def simple_vgg(classes=10, channels=3, size=32):
    """One convolution of 64 filters, a pooling, and linear layers of 1024 and 256."""
    return VGG((64, 0), (1024, 256), classes, channels, size)


def vgg11(classes=10, channels=3, size=32):
    """Of 32 x 32 with one linear layer; of 224 x 224 with three, and torchvision's weights fit."""
    return VGG(_VGG11, () if size < 64 else (4096, 4096), classes, channels, size, dropout=0.5)
