"""Trains a net in PyTorch on the batches of `python -m dlsys.train`: how accurate may it become?

    python3 tools/train_in_pytorch.py resnet20 --data cifar10 --path FOLDER --batch 128 \\
        --epochs 100 --rate 0.1 --decay 0.0001 --warm-up 400 --tf32

The options are those of dlsys.train, and so are initial values, the order of the images, how they
are moved and mirrored, and the rates; only the arithmetic is PyTorch's. On a GPU a step is a CUDA
graph, in channels last. Prints a line for each epoch, and at the end the accuracy on test images.
"""

import sys
import time
from pathlib import Path

import numpy as np

KIT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(KIT / name) for name in ("solution/python", "tests/dlsys")]

import torch
from test_models import in_pytorch

from dlsys import datasets, models, nn, ops
from dlsys.datasets import Batches
from dlsys.gradcheck import evaluate
from dlsys.train.__main__ import parser
from dlsys.train.settings import Settings

F = torch.nn.functional
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
#: Images that are classified at once, and steps before a CUDA graph is recorded.
_AT_ONCE, _FIRST = 500, 3


def placed(array):
    """A numpy array on the device, images by channel last."""
    found = torch.tensor(array, device=DEVICE)
    by_channel = torch.channels_last if found.dim() == 4 else torch.preserve_format
    return found.contiguous(memory_format=by_channel)


class Training:
    """A net with its momentum, and a step that may be replayed."""

    def __init__(self, net, settings, shape):
        self.net, self._settings = net, settings
        state = {name: placed(v.astype(np.float32)) for name, v in net.state_dict().items()}
        self.buffers = {name: v for name, v in state.items() if "running_" in name}
        self.parameters = {name: v for name, v in state.items() if name not in self.buffers}
        self._weights = [v.requires_grad_() for v in self.parameters.values()]
        self._moved = [torch.zeros_like(v) for v in self._weights]
        self.x = placed(np.zeros(shape, np.float32))
        self.y = placed(np.zeros(shape[0], np.int64))
        self.rate, self.loss = placed(np.float32(0)), placed(np.float32(0))
        self._graph, self._made = None, 0

    def scores(self, x, train):
        """Of images of each class."""
        return in_pytorch(torch, self.net, self.parameters, x, self.buffers, train)

    def step(self, x, y, rate):
        """One of stochastic gradient descent; its loss is added to `loss`."""
        self.x.copy_(torch.from_numpy(x), non_blocking=False)
        self.y.copy_(torch.from_numpy(y))
        self.rate.fill_(rate)
        if self._graph is None and self._made == _FIRST and DEVICE == "cuda":
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._step()
        if self._graph is None:
            self._step()
        else:
            self._graph.replay()
        self._made += 1

    def _step(self):
        loss = F.cross_entropy(self.scores(self.x, True), self.y)
        grads = torch.autograd.grad(loss, self._weights)
        with torch.no_grad():
            decay = self._settings.decay
            # As nn.l2: biases and norms are free.
            grads = [g + decay * w if w.dim() > 1 else g
                     for g, w in zip(grads, self._weights, strict=True)]  # fmt: skip
            torch._foreach_mul_(self._moved, self._settings.momentum)
            torch._foreach_add_(self._moved, grads)
            torch._foreach_sub_(self._weights, torch._foreach_mul(self._moved, self.rate))
            self.loss += loss

    @torch.no_grad()
    def accuracy(self, images, labels, statistics):
        """The part of images, uint8, that get the right class."""
        mean, deviation = (np.asarray(v, np.float32).reshape(1, -1, 1, 1) for v in statistics)
        right = 0
        for first in range(0, len(images), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            x = (images[some] / np.float32(255) - mean) / deviation
            right += int(
                (self.scores(placed(x), False).argmax(1).cpu().numpy() == labels[some]).sum()
            )
        return right / len(images)


def main():
    """Trains as the command line asks."""
    made = parser()
    made.description = __doc__.splitlines()[0]
    options = made.parse_args()
    fields = {name: getattr(options, name) for name in Settings.__dataclass_fields__}
    settings = Settings(**fields)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = settings.tf32
    images = datasets.load(settings.data, options.path)
    of_pixels, crop = images.statistics(), 4 if settings.augment else 0
    batches = Batches(
        images.train_x, images.train_y, settings.batch, settings.seed, of_pixels, crop,
        settings.augment, threads=options.threads,
    )  # fmt: skip
    nn.seed(settings.seed)
    shape = images.train_x.shape[1:]
    net = models.BY_NAME[settings.model](shape, len(images.classes))
    training = Training(net, settings, (settings.batch, *shape))
    counter = ops.variable("counter")
    rates = settings.rates(len(batches))(counter)
    begun = time.perf_counter()
    for epoch in range(settings.epochs):
        training.loss.zero_()
        for number, (x, y) in enumerate(batches.epoch(epoch), epoch * len(batches)):
            (rate,) = evaluate([rates], {counter: np.asarray(float(number))})
            training.step(x, y, float(rate))
        valid = training.accuracy(images.valid_x, images.valid_y, of_pixels)
        loss, seconds = training.loss.item() / len(batches), time.perf_counter() - begun
        said = f"epoch {epoch + 1}: loss {loss:.4f}, validation {valid:.1%}, {seconds:.0f} s"
        print(said, flush=True)
    if len(images.test_x):
        found = training.accuracy(images.test_x, images.test_y, of_pixels)
        print(f"test images: {found:.2%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
