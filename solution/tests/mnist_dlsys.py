"""Trains logistic regression and a multi-layer perceptron on MNIST.

python3 tests/mnist_dlsys.py -m logreg -c gpu -e 10 -l
"""

import argparse
import os
import sys
import time

import numpy as np

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python")
)

from dlsys import autodiff as ad
from dlsys import gpu_op, ndarray
from dlsys.data import DataError, load_mnist, one_hot


def logistic_regression():
    """Returns (X, y_, params, logits); params maps a node to its initial value."""
    X, y_ = ad.Variable(name="X"), ad.Variable(name="y_")
    W, b = ad.Variable(name="W"), ad.Variable(name="b")
    product = ad.matmul_op(X, W)
    logits = product + ad.broadcastto_op(b, product)
    return X, y_, {W: np.zeros((784, 10)), b: np.zeros(10)}, logits


def mlp():
    """784 - 256 - 100 - 10 with relu between; see logistic_regression."""
    X, y_ = ad.Variable(name="X"), ad.Variable(name="y_")
    random = np.random.RandomState(123)
    sizes = (784, 256, 100, 10)
    weights = [ad.Variable(name="W%d" % (i + 1)) for i in range(3)]
    biases = [ad.Variable(name="b%d" % (i + 1)) for i in range(3)]
    params = {}
    for i, W in enumerate(weights):
        params[W] = random.normal(scale=0.1, size=sizes[i : i + 2])
    for i, b in enumerate(biases):
        params[b] = random.normal(scale=0.1, size=sizes[i + 1])
    value = X
    for W, b in zip(weights, biases):
        product = ad.matmul_op(value, W)
        logits = product + ad.broadcastto_op(b, product)
        value = ad.relu_op(logits)
    return X, y_, params, logits


def batches(x, y, size):
    """(images, one-hot labels) of full batches, in order."""
    for start in range(0, len(x) - size + 1, size):
        yield x[start : start + size], one_hot(y[start : start + size])


def sgd(params, grads, learning_rate):
    """One step of gradient descent: in place on the GPU, by new arrays on numpy."""
    for node, grad in grads.items():
        if isinstance(grad, ndarray.NDArray):
            gpu_op.matrix_elementwise_multiply_by_const(grad, -learning_rate, grad)
            gpu_op.matrix_elementwise_add(params[node], grad, params[node])
        else:
            params[node] = params[node] - learning_rate * grad


class Trainer:
    """A model, its parameters and its executors, on numpy (ctx None) or on the GPU."""

    def __init__(self, model, ctx, batch_size):
        self.X, self.y_, initial, logits = model()
        loss = ad.softmaxcrossentropy_op(logits, self.y_)
        nodes = list(initial)
        self.nodes, self.batch_size, self.on_gpu = nodes, batch_size, ndarray.is_gpu_ctx(ctx)
        self.executor = ad.Executor([loss, *ad.gradients(loss, nodes)], ctx=ctx)
        self.predictor = ad.Executor([ad.softmax_op(logits)], ctx=ctx)
        self.params = dict(initial)
        if self.on_gpu:
            self.params = {n: ndarray.array(v, ctx=ctx) for n, v in initial.items()}
            # Every batch is copied into these, so that training allocates nothing.
            self.images = ndarray.empty((batch_size, 784), ctx=ctx)
            self.labels = ndarray.empty((batch_size, 10), ctx=ctx)

    def feed(self, images, labels):
        """What to feed for a batch of numpy arrays."""
        if not self.on_gpu:
            return {self.X: images, self.y_: labels, **self.params}
        self.images[:], self.labels[:] = images, labels
        return {self.X: self.images, self.y_: self.labels, **self.params}

    def epoch(self, x, y, learning_rate):
        """Trains on all batches once. Returns the loss of the last batch, shape (1,)."""
        for images, labels in batches(x, y, self.batch_size):
            loss, *grads = self.executor.run(self.feed(images, labels))
            sgd(self.params, dict(zip(self.nodes, grads)), learning_rate)
        return loss.asnumpy() if self.on_gpu else loss

    def accuracy(self, x, y):
        """Share of the images whose most probable class is the label."""
        correct = []
        for images, labels in batches(x, y, self.batch_size):
            feed = self.feed(images, labels)
            del feed[self.y_]  # the predictor's graph has no labels
            (probabilities,) = self.predictor.run(feed, convert_to_numpy_ret_vals=True)
            correct.append(np.argmax(probabilities, axis=1) == np.argmax(labels, axis=1))
        return float(np.mean(correct))


def train(model, ctx, data, epochs, batch_size, learning_rate, print_loss=False, show=print):
    """Trains, and validates after every epoch.

    Returns:
        (accuracy after the last epoch, seconds of training of every epoch).
    """
    trainer, accuracy, seconds = Trainer(model, ctx, batch_size), 0.0, []
    for epoch in range(epochs):
        show("epoch %d" % epoch)
        started = time.perf_counter()
        loss = trainer.epoch(data.train_x, data.train_y, learning_rate)
        seconds.append(time.perf_counter() - started)
        if print_loss:
            show(loss)
        accuracy = trainer.accuracy(data.valid_x, data.valid_y)
        show("validation set accuracy=%f (%.2f s)" % (accuracy, seconds[-1]))
    return accuracy, seconds


def positive(text):
    """A whole number from 1 on."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("%s is less than 1" % text)
    return number


def arguments():
    """(the options of the command line, their parser)."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-m", "--model", choices=["all", "logreg", "mlp"], default="all")
    parser.add_argument("-c", "--executor_context", choices=["numpy", "gpu"], default="numpy")
    parser.add_argument("-e", "--num_epoch", type=positive, default=10)
    parser.add_argument("-l", "--print_loss_val_each_epoch", action="store_true")
    parser.add_argument("-d", "--data", help="folder of the MNIST files; default: search")
    parser.add_argument(
        "-b", "--batch_size", type=positive, help="default 1000; 100 for a small set"
    )
    parser.add_argument("-r", "--learning_rate", type=float, default=None,
                        help="default 1.0; 0.2 for a small set")  # fmt: skip
    return parser.parse_args(), parser


def checked(size, data, parser):
    """A batch size that was asked for, if it can be had; says how many images are left out."""
    most = min(len(data.train_x), len(data.valid_x))
    if size > most:
        parser.error(
            "a batch of %d: there are only %d images to validate with; hint: -b %d"
            % (size, most, most)
        )
    left = len(data.train_x) % size
    if left:
        print("%d of %d images fill no batch of %d: they are left out"
              % (left, len(data.train_x), size))  # fmt: skip
    return size


def main():
    """Trains what the command line asks for."""
    options, parser = arguments()
    try:
        data = load_mnist(options.data)
    except DataError as error:
        parser.error(str(error))
    small = len(data.train_x) < 10000
    asked = options.batch_size
    size = checked(asked, data, parser) if asked else (100 if small else 1000)
    rate = (0.2 if small else 1.0) if options.learning_rate is None else options.learning_rate
    ctx = ndarray.gpu(0) if options.executor_context == "gpu" else None
    models = {"logreg": logistic_regression, "mlp": mlp}
    for name in models if options.model == "all" else [options.model]:
        print("=== %s on %s" % (name, options.executor_context))
        train(
            models[name],
            ctx,
            data,
            options.num_epoch,
            size,
            rate,
            print_loss=options.print_loss_val_each_epoch,
        )


if __name__ == "__main__":
    main()
