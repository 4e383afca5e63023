"""Trains a network on images. Killed at any moment, it goes on to the same bits.

All that training depends on is in one file, the checkpoint: parameters, running figures, momentum,
counters. What batch comes next, the counter of steps says. The log is written first: of it, lines
behind the checkpoint are dropped, and those steps are made again.
"""

import dataclasses
import importlib.util
import math
import time

import numpy as np

from dlsys import models, ndarray, nn, ops, optim, pinned
from dlsys.autodiff import gradients
from dlsys.datasets import Batches
from dlsys.ndarray import size_of
from dlsys.step import compile, parameter
from dlsys.step.files import write_at_once

from . import progress
from .lock import Lock
from .log import Log
from .page import page
from .settings import SettingsError

#: Steps of an epoch behind which none asks for memory.
_FIRST_STEPS = 3
#: Images by which the accuracy on training images is estimated after each epoch.
_ESTIMATED_BY = 1000


class DivergedError(ArithmeticError):
    """The loss is no finite number any more, and would never be one again."""


def has_run(folder):
    """Whether a training was begun in a folder, a Path."""
    return any((folder / name).exists() for name in ("checkpoint.safetensors", "log.jsonl"))


class Solver:
    """A training.

    Attributes:
        net: the network.
        step: the compiled step, which has the parameters.
        log: the Log.
        is_stopping: whether `stop` was called.
    """

    def __init__(
        self, settings, images, folder, ctx=None, save_every=200, threads=1, statistics=False
    ):
        """
        Args:
            settings: the Settings.
            images: the Images.
            folder: of the run, a Path; a run that is there goes on.
            ctx: the device; None is numpy.
            save_every: steps between checkpoints; there is one after each epoch, too.
            threads: that make batches, for a GPU in pinned memory; 0 makes each when it is needed.
            statistics: whether each epoch's line has those of layers; see nn.statistics.

        Raises:
            SettingsError: the folder has a run with other settings, or a process that trains; there
                is no such net; not one batch; save_every is below 1, or threads below 0.
            files.FileError: its checkpoint is damaged.
            OSError: the folder can't be written.
        """
        _check(settings, images, save_every, threads)
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(folder)
        try:
            self._begin(settings, images, folder, ctx, save_every, threads, statistics)
        except BaseException:
            self._lock.release()
            raise

    def _begin(self, settings, images, folder, ctx, save_every, threads, statistics):
        goes_on = has_run(folder)
        if goes_on:
            settings.compare(folder / "settings.json")
        for part in folder.glob("*.part"):  # of a process that was killed as it wrote
            part.unlink()
        self.settings, self._images, self._folder = settings, images, folder
        self._save_every, self.is_stopping, self._ctx = save_every, False, ctx
        nn.seed(settings.seed)
        shape = images.train_x.shape[1:]
        self.net = models.BY_NAME[settings.model](shape, len(images.classes))
        of_pixels, crop = images.statistics(), 4 if settings.augment else 0
        self._batches = Batches(
            images.train_x, images.train_y, settings.batch, settings.seed, of_pixels, crop,
            settings.augment, threads=threads,
            empty=_pinned if ndarray.is_gpu_ctx(ctx) else np.empty,
        )  # fmt: skip
        self._make_step(shape, ctx)
        size = _divisor(len(images.valid_x), settings.batch)
        self._make_measuring(shape, size, statistics)
        said = {"statistics": of_pixels, "threads": 0}
        self._validation = Batches(
            images.valid_x, images.valid_y, size, shuffle=False, **said
        )  # fmt: skip
        self._plain = Batches(images.train_x, images.train_y, size, settings.seed + 1, **said)
        checkpoint = folder / "checkpoint.safetensors"
        if checkpoint.exists():
            self.step.load(checkpoint)
        if not goes_on:
            settings.keep(folder / "settings.json")
        self.log = Log(folder / "log.jsonl", self.steps)

    @property
    def steps(self):
        """How many steps have been made."""
        return int(self.step.get(self._counter))

    @property
    def total(self):
        """How many steps there will be."""
        return self.settings.epochs * len(self._batches)

    def run(self, watch=lambda solver: None):
        """Makes all steps that are left.

        Args:
            watch: called after each step.

        Returns:
            The last epoch's line of the log, empty where the log was lost; None where `stop` was
            called.

        Raises:
            DivergedError: the loss is infinite or NaN.
            OSError: a file can't be written; the last checkpoint is whole.
        """
        try:
            done = self.steps
            with progress.bar(self.total, done) as show:
                while done < self.total and not self.is_stopping:
                    done = self._epoch(done, show, watch)
            if done < self.total:
                return None
            nn.save(self._folder / "weights.safetensors", self.net.state_dict(self.step))
            if not self.log.epochs():
                return {}
            self._write_page()  # perhaps it was killed before it was written
            return self.log.epochs()[-1]
        finally:
            self.close()

    def close(self):
        """Lets others train in the folder; `run` does so at its end."""
        self.log.close()
        self._lock.release()

    def stop(self):
        """Has `run` write a checkpoint and return after the step that it is at."""
        self.is_stopping = True

    def save(self):
        """Writes the checkpoint, so that the run can go on from here."""
        self.log.flush()
        self.step.save(self._folder / "checkpoint.safetensors")

    def _make_step(self, shape, ctx):
        batch, settings = self.settings.batch, self.settings
        self._x = ops.variable("images", (batch, *shape))
        self._y = ops.variable("labels", (batch,), np.int64)
        with self._precision():
            logits = self.net(self._x, train=True)
        loss = ops.cross_entropy(logits, self._y)
        whole = loss + nn.l2(self.net, settings.decay) if settings.decay else loss
        weights = self.net.parameters()
        rate = settings.rates(len(self._batches))
        updates = optim.sgd(weights, gradients(whole, weights), rate, settings.momentum)
        self._counter = parameter("train.steps", np.zeros((), np.int64))
        updates[self._counter] = ops.as_node(self._counter) - np.asarray(-1)
        outputs = [loss, _right(logits, self._y)]
        updates |= self.net.updates()
        self.step = compile(outputs, updates, ctx, tf32=settings.tf32)

    def _precision(self):
        return nn.autocast("bfloat16" if self.settings.bf16 else None)

    def _make_measuring(self, shape, size, statistics):
        """Programs that read the step's parameters where they are: accuracy, and statistics."""
        self._measures = {size: self._measure_of(size, shape)}
        figures = nn.statistics(self.net) if statistics else {}
        self._layers, tf32 = list(figures), self.settings.tf32
        wanted = list(figures.values())
        self._look = compile(wanted, {}, self._ctx, tf32=tf32) if statistics else None
        self._measured = list(self.net.named_parameters().values())

    def _measure_of(self, size, shape):
        """(images, labels, the program of how many are right) of batches of a size."""
        x = ops.variable("images", (size, *shape))
        y = ops.variable("labels", (size,), np.int64)
        with self._precision():
            right = _right(self.net(x), y)
        return x, y, compile(right, {}, self._ctx, tf32=self.settings.tf32)

    def _epoch(self, done, show, watch):
        """Makes the rest of an epoch; the number of steps after it."""
        per_epoch = len(self._batches)
        number, first = divmod(done, per_epoch)
        started, counted, self._allocations = time.perf_counter(), None, 0
        feeds = ({self._x: x, self._y: y} for x, y in self._batches.epoch(number, first))
        for loss, right in self.step.over(feeds, as_numpy=True):
            done += 1
            # Two sets of arrays on a GPU are filled in turn, and a step is recorded for each.
            if done - first - number * per_epoch == _FIRST_STEPS:
                counted = ndarray.allocations()
            loss, accuracy = float(loss), float(right) / self.settings.batch
            if not math.isfinite(loss):
                raise DivergedError(
                    "step %d: the loss is %s; hint: a smaller --rate, or --warm-up, and another"
                    " --output" % (done, loss)
                )
            self.log.add(step=done, loss=loss, accuracy=accuracy)
            show(done, "epoch %d  loss %.4f" % (number + 1, loss))
            watch(self)
            # The checkpoint of the last step is written behind the epoch's line.
            if done % per_epoch and (self.is_stopping or done % self._save_every == 0):
                self.save()
            if self.is_stopping:
                break
        if counted is not None:
            self._allocations = ndarray.allocations() - counted
        if done % per_epoch == 0:
            self._end_epoch(number, done, time.perf_counter() - started)
        return done

    def _end_epoch(self, number, done, seconds):
        first = done - len(self._batches)  # the log may lack steps
        losses = [line["loss"] for line in self.log.steps() if line["step"] > first]
        loss = sum(losses) / len(losses)
        training = self.accuracy(self._plain, number, _ESTIMATED_BY)
        validation = self.accuracy(self._validation)
        more = {"layers": self.statistics(number)} if self._look else {}
        if done == self.total and len(self._images.test_x):
            more["test_accuracy"] = self._test_accuracy()
        self.log.add(
            epoch=number, step=done, loss=loss, training_accuracy=training,
            validation_accuracy=validation, seconds=seconds, memory=self._memory(),
            allocations=self._allocations, **more,
        )  # fmt: skip
        self.save()
        self._write_page()
        said = (number + 1, loss, 100 * training, 100 * validation, seconds)
        print(
            "epoch %d: loss %.4f, training %.1f %%, validation %.1f %%, %.0f s" % said, flush=True
        )
        if "test_accuracy" in more:
            print("test images: %.2f %%" % (100 * more["test_accuracy"]), flush=True)

    def accuracy(self, batches, epoch=0, most=None):
        """The part of images that get the right class, of an epoch of batches or its first `most`
        images."""
        parameters = self._parameters()
        images, labels, measure = self._measures[batches.size]
        right = seen = 0
        for x, y in batches.epoch(epoch):
            right += float(measure({images: x, labels: y, **parameters}, as_numpy=True))
            seen += len(y)
            if most and seen >= most:
                break
        return right / seen

    def _test_accuracy(self):
        x, y = self._images.test_x, self._images.test_y
        size = _divisor(len(x), self.settings.batch)
        if size not in self._measures:
            self._measures[size] = self._measure_of(size, x.shape[1:])
        of_pixels = self._images.statistics()
        return self.accuracy(Batches(x, y, size, statistics=of_pixels, shuffle=False, threads=0))

    def statistics(self, epoch=0):
        """name -> [mean, deviation, share of dead units] of each layer's result, of a batch of
        training images as they are."""
        x, _ = next(self._plain.epoch(epoch))
        images, _, _ = self._measures[self._plain.size]
        found = self._look({images: x, **self._parameters()}, as_numpy=True)
        return {name: each.tolist() for name, each in zip(self._layers, found)}

    def _parameters(self):
        state = self.step.state
        return {node: state[node.name] for node in self._measured}

    def _memory(self):
        """Bytes of what the step keeps, and on a device those of its other values."""
        arrays = self.step.state.values()
        found = {"parameters": sum(size_of(a.shape) * a.dtype.itemsize for a in arrays)}
        return found if self._ctx is None else {**found, "values": self.step.run_of().program.peak}

    def _write_page(self):
        said = dataclasses.asdict(self.settings)
        words = "%s, %d training images from %s" % (
            said["data"], len(self._images.train_x), self._images.source,
        )  # fmt: skip
        if "test_accuracy" in self.log.epochs()[-1]:
            words += "; %.2f %% of the test images are right" % (
                100 * self.log.epochs()[-1]["test_accuracy"]
            )
        text = page("Training of %s" % said["model"], words, self.log, said)
        write_at_once(str(self._folder / "page.html"), text.encode())


def _check(settings, images, save_every, threads):
    if importlib.util.find_spec("safetensors") is None:
        raise SettingsError(
            "checkpoints need the package safetensors; hint: python3 -m pip install safetensors"
        )
    if settings.model not in models.BY_NAME:
        known = ", ".join(models.BY_NAME)
        raise SettingsError("there is no net %r; hint: %s" % (settings.model, known))
    if settings.batch > len(images.train_x):
        raise SettingsError(
            "batches of %d of %d training images; hint: a smaller --batch"
            % (settings.batch, len(images.train_x))
        )
    if save_every < 1:
        raise SettingsError("a checkpoint every %s steps; hint: 1 or more" % save_every)
    if threads < 0:
        raise SettingsError("%s threads; hint: 0 or more" % threads)


def _right(logits, labels):
    """How many rows are largest at their label."""
    return ops.sum(ops.equal(ops.argmax(logits, -1), labels) * 1.0)


def _pinned(shape, dtype):
    """An array in memory that a GPU reads by itself."""
    return pinned(np.zeros(shape, dtype))


def _divisor(count, most):
    """The largest number up to `most` that divides `count`."""
    return next(size for size in range(min(count, most), 0, -1) if count % size == 0)
