"""Training of networks on images, which goes on where it was interrupted.

    python -m dlsys.train resnet14 --data cifar10
    python -m dlsys.train resnet14 --data cifar10 --resume

Start at solver.py. A run has a folder: settings.json, log.jsonl (a line each step and each epoch),
checkpoint.safetensors, page.html with curves, lock (who trains there), and in the end
weights.safetensors.
"""

from .settings import Settings as Settings
from .settings import SettingsError as SettingsError
from .solver import DivergedError as DivergedError
from .solver import Solver as Solver
