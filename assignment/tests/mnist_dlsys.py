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

from dlsys import autodiff as ad  # noqa: E402 (the path is set first)
from dlsys import gpu_op, ndarray  # noqa: E402
from dlsys.data import load_mnist, one_hot  # noqa: E402


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


def train(model, ctx, data, epochs, batch_size, learning_rate, print_loss):
    """Trains and validates after every epoch. Returns the accuracy after the last."""
    X, y_, initial, logits = model()
    loss = ad.softmaxcrossentropy_op(logits, y_)
    nodes = list(initial)
    executor = ad.Executor([loss, *ad.gradients(loss, nodes), ad.softmax_op(logits)], ctx=ctx)
    predictor = ad.Executor([ad.softmax_op(logits)], ctx=ctx)
    on_gpu = ndarray.is_gpu_ctx(ctx)
    params = {n: ndarray.array(v, ctx=ctx) if on_gpu else v for n, v in initial.items()}
    feed = {}
    if on_gpu:
        feed = {
            X: ndarray.empty((batch_size, 784), ctx=ctx),
            y_: ndarray.empty((batch_size, 10), ctx=ctx),
        }
    accuracy = 0.0
    for epoch in range(epochs):
        print("epoch %d" % epoch)
        started = time.perf_counter()
        for images, labels in batches(data.train_x, data.train_y, batch_size):
            if on_gpu:
                feed[X][:], feed[y_][:] = images, labels
            else:
                feed = {X: images, y_: labels}
            loss_val, *grads, _ = executor.run({**feed, **params})
            sgd(params, dict(zip(nodes, grads)), learning_rate)
        if print_loss:
            print(loss_val.asnumpy() if on_gpu else loss_val)
        seconds = time.perf_counter() - started
        accuracy = validate(predictor, X, params, data, batch_size)
        print("validation set accuracy=%f (%.2f s)" % (accuracy, seconds))
    return accuracy


def validate(predictor, X, params, data, batch_size):
    """Share of the validation images whose most probable class is the label."""
    correct = []
    for images, labels in batches(data.valid_x, data.valid_y, batch_size):
        (probabilities,) = predictor.run({X: images, **params}, convert_to_numpy_ret_vals=True)
        correct.append(np.mean(np.argmax(probabilities, axis=1) == np.argmax(labels, axis=1)))
    return float(np.mean(correct))


def arguments():
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-m", "--model", choices=["all", "logreg", "mlp"], default="all")
    parser.add_argument("-c", "--executor_context", choices=["numpy", "gpu"], default="numpy")
    parser.add_argument("-e", "--num_epoch", type=int, default=10)
    parser.add_argument("-l", "--print_loss_val_each_epoch", action="store_true")
    parser.add_argument("-d", "--data", help="folder of the MNIST files; default: search")
    parser.add_argument("-b", "--batch_size", type=int, help="default 1000; 100 for a small set")
    parser.add_argument("-r", "--learning_rate", type=float, default=None,
                        help="default 1.0; 0.2 for a small set")  # fmt: skip
    return parser.parse_args()


def main():
    """Trains what the command line asks for."""
    options = arguments()
    data = load_mnist(options.data)
    small = len(data.train_x) < 10000
    ctx = ndarray.gpu(0) if options.executor_context == "gpu" else None
    models = {"logreg": logistic_regression, "mlp": mlp}
    for name in models if options.model == "all" else [options.model]:
        print("=== %s on %s" % (name, options.executor_context))
        train(
            models[name],
            ctx,
            data,
            options.num_epoch,
            options.batch_size or (100 if small else 1000),
            options.learning_rate or (0.2 if small else 1.0),
            options.print_loss_val_each_epoch,
        )


if __name__ == "__main__":
    main()
