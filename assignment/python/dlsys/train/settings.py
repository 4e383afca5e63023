"""What a training is told: all of it is kept with the run, and must be the same when it goes on."""

import dataclasses
import json
import math
import numbers

from dlsys import optim
from dlsys.step.files import write_at_once

SCHEDULES = ("constant", "step", "cosine", "exponential")
#: Number -> (the least, what it must be below, that in words).
_RANGES = {
    "epochs": (1, 1_000_001, "1 to 1,000,000"),
    "batch": (1, math.inf, "1 or more"),
    "rate": (0, math.inf, "0 or more"),
    "momentum": (0, 1, "from 0 to below 1"),
    "decay": (0, math.inf, "0 or more"),
    "warm_up": (0, math.inf, "0 or more"),
    "seed": (0, math.inf, "0 or more"),
}


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
        bf16: whether convolutions compute in bfloat16; see nn.autocast.
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
    bf16: bool = False
    seed: int = 0

    def __post_init__(self):
        if self.schedule not in SCHEDULES:
            known = ", ".join(SCHEDULES)
            raise SettingsError("the schedule is %r; hint: %s" % (self.schedule, known))
        for name, (least, end, words) in _RANGES.items():
            value = getattr(self, name)
            kind = numbers.Integral if isinstance(getattr(Settings, name), int) else numbers.Real
            if not isinstance(value, kind):
                raise SettingsError("%s is %r; hint: a number, %s" % (name, value, words))
            if not least <= value < end:  # nor if it is NaN
                raise SettingsError("%s is %s; hint: %s" % (name, value, words))

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
        """Writes them to a file."""
        write_at_once(str(path), json.dumps(dataclasses.asdict(self), indent=1).encode())

    def compare(self, path):
        """Raises unless they are those that a file has.

        Raises:
            SettingsError: the file has others, or is missing or damaged.
        """
        mine, kept = dataclasses.asdict(self), _kept(path)
        if mine.keys() != kept.keys():
            names = ", ".join(sorted(mine.keys() ^ kept.keys()))
            raise SettingsError(
                "%s is of another version of dlsys, by %s; hint: another --output" % (path, names)
            )
        said = [
            "%s is %s, was %s" % (k, mine[k], kept[k]) for k in sorted(mine) if mine[k] != kept[k]
        ]
        if said:
            raise SettingsError("%s: %s; hint: another --output" % (path, ", ".join(said)))


def _kept(path):
    """What a file of settings says, a dictionary."""
    try:
        found = json.loads(path.read_bytes())
        if isinstance(found, dict):
            return found
        reason = "it holds no settings"
    except FileNotFoundError:
        reason = "it is missing"
    except ValueError as error:
        reason = "it is damaged: %s" % error
    raise SettingsError(
        "%s tells how the run began, and %s; hint: another --output, or that file as a run with the"
        " same settings writes it" % (path, reason)
    )
