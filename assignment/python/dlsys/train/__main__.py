"""python -m dlsys.train MODEL --data SET: trains a network, and goes on where it stopped."""

import argparse
import contextlib
import dataclasses
import signal
import sys
from pathlib import Path

from dlsys import datasets, models, ndarray, nn
from dlsys._base import DeviceError
from dlsys.backend.kernels import CompileError
from dlsys.download import DataError
from dlsys.step.files import FileError

from .settings import SCHEDULES, Settings, SettingsError
from .solver import DivergedError, Solver, has_run

_EXAMPLES = """examples:
  python -m dlsys.train mlp --data synthetic --epochs 2        needs no download
  python -m dlsys.train resnet14 --data cifar10 --output runs/first
  python -m dlsys.train resnet14 --data cifar10 --output runs/first --resume
  python -m dlsys.train resnet18 --data cifar10 --summary      layers, and no training
"""
#: Option -> what it says, for those whose name does not say it.
_HELP = {
    "epochs": "how often all images are seen",
    "batch": "images of a step",
    "warm_up": "steps in which the rate rises from 0",
    "seed": "of the initial values, of the order, and of all else that is random",
    "rate": "learning rate",
    "momentum": "of the gradient descent",
    "decay": "strength of L2 on all weights",
}
_GOES_ON = "--resume goes on from the last checkpoint"
_DEVICES = {"cpu": ndarray.cpu(0), "gpu": ndarray.gpu(0), "numpy": None}


def parser():
    """The options; those of Settings have its fields' names."""
    found = argparse.ArgumentParser(
        prog="python -m dlsys.train", description=__doc__, epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    of = Settings()
    found.add_argument("model", choices=models.BY_NAME, help="the network")
    found.add_argument("--data", choices=datasets.NAMES, default=of.data, help="the images")
    found.add_argument("--path", help="the folder of the data, if it is not found by itself")
    for name, words in _HELP.items():
        value = getattr(of, name)
        found.add_argument(
            "--" + name.replace("_", "-"), type=type(value), default=value,
            metavar="N" if isinstance(value, int) else "X",
            help="%s (default: %s)" % (words, value),
        )  # fmt: skip
    found.add_argument(
        "--schedule", choices=SCHEDULES, default=of.schedule,
        help="of the rate: a tenth after each third of the epochs, to 0 over all, or 0.91 of it in"
        " each epoch (default: %(default)s)",
    )  # fmt: skip
    found.add_argument("--tf32", action="store_true", help="a GPU's tensor cores multiply: faster,"
                       " with 11 bits of each operand")  # fmt: skip
    found.add_argument("--bf16", action="store_true", help="convolutions compute in bfloat16, which"
                       " has 8 bits: faster still")  # fmt: skip
    found.add_argument("--plain", dest="augment", action="store_false", help="images as they are")
    found.add_argument("--device", choices=("auto", *_DEVICES), default="auto",
                       help="auto is a real GPU, or else all cores")  # fmt: skip
    found.add_argument("--output", help="the folder of the run; runs/MODEL-SET otherwise")
    found.add_argument("--resume", action="store_true", help="go on with the run of that folder")
    found.add_argument("--summary", action="store_true", help="says what the network has, and ends")
    found.add_argument("--statistics", action="store_true",
                       help="mean, deviation and dead units of each layer")  # fmt: skip
    found.add_argument("--threads", type=int, default=2, metavar="N",
                       help="that make batches; 0: when one is needed (default: 2)")  # fmt: skip
    found.add_argument("--save-every", type=int, default=200, metavar="N",
                       help="steps from checkpoint to checkpoint (default: 200)")  # fmt: skip
    return found


def main(argv=None):
    """Exit code 0; 1 where the loss became infinite or NaN; 2 where what was asked for can't be
    done; 3 where the machine failed; 130 if it was told to stop."""
    options = parser().parse_args(argv)
    folder = Path(options.output or "runs/%s-%s" % (options.model, options.data))
    try:
        return _train(options, folder)
    except FileError as error:
        return _ended(2, error, "another --output")
    except (DataError, SettingsError, NotImplementedError) as error:  # or a task to be done
        return _ended(2, error)
    except DivergedError as error:
        return _ended(1, error)
    except OSError as error:
        said = "%s: %s" % (error.filename or folder, error.strerror or error)
        return _ended(3, said, _GOES_ON if has_run(folder) else "another --output")
    except MemoryError as error:
        return _ended(3, "out of memory: %s" % error, "a smaller --batch")
    except (DeviceError, CompileError) as error:
        return _ended(3, error, "a smaller --batch" if "memory" in str(error) else "")
    except KeyboardInterrupt:
        return _ended(130, "interrupted", _GOES_ON if has_run(folder) else "")


def _ended(code, words, hint=""):
    print(words, hint and "; hint: " + hint, sep="", file=sys.stderr)
    return code


def _train(options, folder):
    names = [field.name for field in dataclasses.fields(Settings)]
    settings = Settings(**{name: getattr(options, name) for name in names})
    images = datasets.load(options.data, options.path)
    if options.summary:
        shape = images.train_x.shape[1:]
        net = models.BY_NAME[options.model](shape, len(images.classes))
        print(nn.summary(net, (options.batch, *shape)))
        return 0
    if has_run(folder) and not options.resume:
        raise SettingsError("%s has a run; hint: --resume, or another --output" % folder)
    solver = Solver(
        settings, images, folder, _device(options.device), options.save_every, options.threads,
        options.statistics,
    )  # fmt: skip
    if options.resume:
        print("%s: after step %d of %d" % (folder, solver.steps, solver.total), flush=True)
    with _stopped_by_signals(solver):
        try:
            found = solver.run()
        except CompileError:
            if solver.is_stopping:  # Ctrl-C reaches the compiler, too
                raise KeyboardInterrupt from None
            raise
    if found is None:
        return _ended(130, "stopped after step %d" % solver.steps, "--resume")
    print("wrote %s" % (folder / "page.html"))
    return 0


@contextlib.contextmanager
def _stopped_by_signals(solver):
    """Ctrl-C and SIGTERM stop it after a step; the second Ctrl-C at once."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(number, frame):
        solver.stop()
        signal.signal(number, before[number])

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _device(name):
    if name == "auto":
        return _DEVICES["cpu" if ndarray.is_emulated() else "gpu"]
    return _DEVICES[name]


if __name__ == "__main__":
    sys.exit(main())
