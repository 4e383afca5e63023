"""Sets of images for training: where they are found, and batches of them.

    images = datasets.load("cifar10")
    batches = Batches(images.train_x, images.train_y, 128, seed=0, crop=4, flip=True)
    for x, y in batches.epoch(0): ...

Start at images.py for what a set is, at batches.py for what training reads.
"""

from .batches import Batches as Batches
from .images import NAMES as NAMES
from .images import Images as Images
from .images import load as load
