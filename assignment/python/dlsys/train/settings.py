"""What a training is told: all of it is kept with the run, and must be the same when it goes on."""

import dataclasses
import json

from dlsys import optim
from dlsys.step.files import write_at_once

SCHEDULES = ("constant", "step", "cosine", "exponential")


class SettingsError(ValueError):
    """Settings that mean nothing, or that are not those with which a run began."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """Of one run.

    Attributes:
        model, data: names: see models.BY_NAME and datasets.NAMES.
        epochs, batch: how many, of how many images.
        rate, momentum: of the gradient descent.
        decay: strength of L2 on all weights.
        schedule: of the rate. "step" is a tenth after each third of the epochs, "cosine" falls to 0
            over all, "exponential" is 0.91 of it in each epoch.
        warm_up: steps in which the rate rises from 0.
        tf32: whether a GPU may round operands of products to TF32, for its tensor cores.
        augment: whether images are moved by up to 4 pixels, and mirrored.
        seed: of the initial values, of the order and of all else that is random.
    """

    model: str = "resnet14"
    data: str = "cifar10"
    epochs: int = 10
    batch: int = 64
    rate: float = 0.05
    momentum: float = 0.9
    decay: float = 1e-4
    schedule: str = "cosine"
    warm_up: int = 0
    augment: bool = True
    tf32: bool = False
    seed: int = 0

    def __post_init__(self):
        if self.schedule not in SCHEDULES:
            known = ", ".join(SCHEDULES)
            raise SettingsError("the schedule is %r; hint: %s" % (self.schedule, known))
        if self.epochs < 1 or self.batch < 1:
            raise SettingsError(
                "%d epochs of batches of %d; hint: 1 or more" % (self.epochs, self.batch)
            )

    def rates(self, steps_of_epoch):
        """The rate as optim takes it: a function of the counter of steps."""
        total = self.epochs * steps_of_epoch
        found = {
            "constant": lambda: optim.constant(self.rate),
            "step": lambda: optim.step_decay(self.rate, max(1, total // 3)),
            "cosine": lambda: optim.cosine(self.rate, total),
            "exponential": lambda: optim.step_decay(self.rate, steps_of_epoch, 0.91),
        }[self.schedule]()
        return optim.warm_up(found, self.warm_up) if self.warm_up else found

    def keep(self, path):
        """Writes them, or raises unless they are those that the file has.

        Raises:
            SettingsError: the file has others.
        """
        mine = dataclasses.asdict(self)
        if not path.exists():
            write_at_once(str(path), json.dumps(mine, indent=1).encode())
            return
        kept = json.loads(path.read_text())
        other = sorted(k for k in mine.keys() | kept.keys() if mine.get(k) != kept.get(k))
        if other:
            said = ", ".join("%s is %s, was %s" % (k, mine.get(k), kept.get(k)) for k in other)
            raise SettingsError("%s: %s; hint: another --output" % (path, said))
