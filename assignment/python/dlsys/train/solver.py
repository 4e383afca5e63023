"""Trains a network on images. Killed at any moment, it goes on to the same bits.

All that training depends on is in one file, the checkpoint: parameters, running figures, momentum,
counters. What batch comes next, the counter of steps says. The log is written first: of it, lines
behind the checkpoint are dropped, and those steps are made again.
"""

import dataclasses
import time

import numpy as np

from dlsys import models, nn, ops, optim
from dlsys.autodiff import gradients
from dlsys.datasets import Batches
from dlsys.step import compile, parameter
from dlsys.step.files import write_at_once

from . import progress
from .log import Log
from .page import page

#: Images by which the accuracy on training images is estimated after each epoch.
_ESTIMATED_BY = 1000


class Solver:
    """A training.

    Attributes:
        net: the network.
        step: the compiled step, which has the parameters.
        log: the Log.
    """

    def __init__(self, settings, images, folder, ctx=None, save_every=200, threads=1):
        """
        Args:
            settings: the Settings.
            images: the Images.
            folder: of the run, a Path; a run that is there goes on.
            ctx: the device; None is numpy.
            save_every: steps between checkpoints; there is one after each epoch, too.
            threads: that make batches.

        Raises:
            SettingsError: the folder has a run with other settings.
            files.FileError: its checkpoint is damaged.
        """
        folder.mkdir(parents=True, exist_ok=True)
        settings.keep(folder / "settings.json")
        self.settings, self._images, self._folder = settings, images, folder
        self._save_every, self._is_stopping = save_every, False
        nn.seed(settings.seed)
        shape = images.train_x.shape[1:]
        self.net = models.BY_NAME[settings.model](shape, len(images.classes))
        statistics, crop = images.statistics(), 4 if settings.augment else 0
        self._batches = Batches(
            images.train_x, images.train_y, settings.batch, settings.seed, statistics, crop,
            settings.augment, threads=threads,
        )  # fmt: skip
        self._make_step(shape, ctx)
        size = _divisor(len(images.valid_x), settings.batch)
        self._make_measuring(shape, size, ctx)
        said = {"statistics": statistics, "threads": 0}
        self._validation = Batches(
            images.valid_x, images.valid_y, size, shuffle=False, **said
        )  # fmt: skip
        self._plain = Batches(images.train_x, images.train_y, size, settings.seed + 1, **said)
        checkpoint = folder / "checkpoint.safetensors"
        if checkpoint.exists():
            self.step.load(checkpoint)
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
            The last epoch's line of the log; None where `stop` was called.
        """
        done = self.steps
        with progress.bar(self.total, done) as show:
            while done < self.total and not self._is_stopping:
                done = self._epoch(done, show, watch)
        self.log.close()
        if done < self.total:
            return None
        nn.save(self._folder / "weights.safetensors", self.net.state_dict(self.step))
        return self.log.epochs()[-1]

    def stop(self):
        """Has `run` write a checkpoint and return after the step that it is at."""
        self._is_stopping = True

    def save(self):
        """Writes the checkpoint, so that the run can go on from here."""
        self.log.flush()
        self.step.save(self._folder / "checkpoint.safetensors")

    def _make_step(self, shape, ctx):
        batch, settings = self.settings.batch, self.settings
        self._x = ops.variable("images", (batch, *shape))
        self._y = ops.variable("labels", (batch,), np.int64)
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

    def _make_measuring(self, shape, size, ctx):
        """A second program, which reads the step's parameters where they are."""
        self._seen_x = ops.variable("images", (size, *shape))
        self._seen_y = ops.variable("labels", (size,), np.int64)
        right = _right(self.net(self._seen_x), self._seen_y)
        self._measure = compile(right, {}, ctx, tf32=self.settings.tf32)
        self._measured = list(self.net.named_parameters().values())

    def _epoch(self, done, show, watch):
        """Makes the rest of an epoch; the number of steps after it."""
        per_epoch = len(self._batches)
        number, first = divmod(done, per_epoch)
        started = time.perf_counter()
        feeds = ({self._x: x, self._y: y} for x, y in self._batches.epoch(number, first))
        for loss, right in self.step.over(feeds, as_numpy=True):
            done += 1
            loss, accuracy = float(loss), float(right) / self.settings.batch
            self.log.add(step=done, loss=loss, accuracy=accuracy)
            show(done, "epoch %d  loss %.4f" % (number + 1, loss))
            watch(self)
            # The checkpoint of the last step is written behind the epoch's line.
            if done % per_epoch and (self._is_stopping or done % self._save_every == 0):
                self.save()
            if self._is_stopping:
                break
        if done % per_epoch == 0:
            self._end_epoch(number, done, time.perf_counter() - started)
        return done

    def _end_epoch(self, number, done, seconds):
        losses = [line["loss"] for line in self.log.steps()[-len(self._batches) :]]
        loss = sum(losses) / len(losses)
        training = self.accuracy(self._plain, number, _ESTIMATED_BY)
        validation = self.accuracy(self._validation)
        self.log.add(
            epoch=number, step=done, loss=loss, training_accuracy=training,
            validation_accuracy=validation, seconds=seconds,
        )  # fmt: skip
        self.save()
        self._write_page()
        said = (number + 1, loss, 100 * training, 100 * validation, seconds)
        print(
            "epoch %d: loss %.4f, training %.1f %%, validation %.1f %%, %.0f s" % said, flush=True
        )

    def accuracy(self, batches, epoch=0, most=None):
        """The part of images that get the right class, of an epoch of batches or its first `most`
        images."""
        state = self.step.state
        parameters = {node: state[node.name] for node in self._measured}
        right = seen = 0
        for x, y in batches.epoch(epoch):
            feeds = {self._seen_x: x, self._seen_y: y, **parameters}
            right += float(self._measure(feeds, as_numpy=True))
            seen += len(y)
            if most and seen >= most:
                break
        return right / seen

    def _write_page(self):
        said = dataclasses.asdict(self.settings)
        words = "%s, %d training images from %s" % (
            said["data"], len(self._images.train_x), self._images.source,
        )  # fmt: skip
        text = page("Training of %s" % said["model"], words, self.log, said)
        write_at_once(str(self._folder / "page.html"), text.encode())


def _right(logits, labels):
    """How many rows are largest at their label."""
    return ops.sum(ops.equal(ops.argmax(logits, -1), labels) * 1.0)


def _divisor(count, most):
    """The largest number up to `most` that divides `count`."""
    return next(size for size in range(min(count, most), 0, -1) if count % size == 0)
