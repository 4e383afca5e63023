"""Optimisers and schedules as graphs: each gives the `updates` that dlsys.compile takes.

    grads = gradients(loss, weights)
    grads, norm = optim.clip_by_global_norm(grads, 1.0)
    updates = optim.adamw(weights, grads, optim.warm_up(optim.cosine(1e-3, 10000), 100))
    step = dlsys.compile([loss, norm], updates, ctx)

What an optimiser keeps, its counter of steps too, are parameters of the step, and saved with it.
A rate is a number, a node (such as a variable that is fed), or a schedule: a function that makes
the node of the rate of the counter, which is 0 in the first step.
"""

import math

import numpy as np

from . import ops
from .step.state import parameter

#: A rate that has fallen to this part of the first is gone in a float32.
_SMALLEST = 1e-45


def sgd(parameters, grads, rate, momentum=0.0, nesterov=False, weight_decay=0.0, name="sgd"):
    """Stochastic gradient descent: v = momentum * v + g, p = p - rate * v.

    Args:
        parameters: variables of the step.
        grads: the gradient of each.
        rate: of learning.
        momentum: the part of the last direction that is kept; 0 keeps nothing.
        nesterov: whether to look ahead: p = p - rate * (g + momentum * v).
        weight_decay: added to the gradients, so many times the parameters.
        name: what the names of the state begin with; two optimisers in a step need two.

    Returns:
        parameter -> node of its new value.

    Raises:
        ValueError: there are not as many gradients as parameters, or Nesterov without momentum.
    """
    if nesterov and not momentum:
        raise ValueError("sgd: nesterov looks along the momentum, which is 0")
    rate, updates = _rate(rate, name)
    for p, grad in _pairs(parameters, grads):
        grad = grad + p * weight_decay if weight_decay else grad
        if momentum:
            velocity = parameter("%s.%s.velocity" % (name, p.name), like=p)
            updates[velocity] = moved = velocity * momentum + grad
            grad = grad + moved * momentum if nesterov else moved
        updates[p] = p - grad * rate
    return updates


def adam(parameters, grads, rate, betas=(0.9, 0.999), epsilon=1e-8, weight_decay=0.0, name="adam"):
    """Adam (Kingma and Ba, 2015), with both means corrected for their start at zero.

    Args:
        betas: what is kept of the mean of the gradients, and of that of their squares.
        epsilon: added to the root of the second.
        weight_decay: added to the gradients, so many times the parameters.

    The others, what it returns and raises, are those of `sgd`.
    """
    grads = [
        grad + p * weight_decay if weight_decay else grad for p, grad in _pairs(parameters, grads)
    ]
    return _adam(parameters, grads, rate, betas, epsilon, 0.0, name)


def adamw(
    parameters, grads, rate, betas=(0.9, 0.999), epsilon=1e-8, weight_decay=0.01, name="adamw"
):
    """AdamW (Loshchilov and Hutter, 2019): decay makes the parameters p * (1 - rate * decay).

    Arguments, what it returns and raises are those of `adam`.
    """
    return _adam(parameters, grads, rate, betas, epsilon, weight_decay, name)


def _adam(parameters, grads, rate, betas, epsilon, decay, name):
    counter = _counter(name)
    rate, updates = _rate(rate, name, counter)
    updates[counter] = _next(counter)
    first, second = (_one_minus_power(beta, updates[counter]) for beta in betas)
    pace, root = rate / first, ops.rsqrt(second)
    for p, grad in _pairs(parameters, grads):
        mean = parameter("%s.%s.mean" % (name, p.name), like=p)
        square = parameter("%s.%s.square" % (name, p.name), like=p)
        updates[mean] = mean * betas[0] + grad * (1 - betas[0])
        updates[square] = square * betas[1] + ops.square(grad) * (1 - betas[1])
        kept = p * (1 - rate * decay) if decay else p
        updates[p] = kept - pace * updates[mean] / (ops.sqrt(updates[square]) * root + epsilon)
    return updates


def clip_by_global_norm(grads, most):
    """The gradients, made shorter together if their norm as one vector is above `most`.

    Returns:
        (the gradients, the node of their norm before).
    """
    total = ops.sum(ops.square(grads[0]))
    for grad in grads[1:]:
        total = total + ops.sum(ops.square(grad))
    norm = ops.sqrt(total)
    # As PyTorch, which never divides by zero.
    factor = ops.minimum(most / (norm + 1e-6), 1.0)
    return [grad * factor for grad in grads], norm


def accumulate(optimiser, parameters, grads, count, name="accumulate"):
    """An optimiser's updates in each `count`-th step, of the mean of all gradients since the last.

    Args:
        optimiser: a function of gradients that returns updates.
        parameters, grads: as for `sgd`.
        count: of steps.

    Returns:
        parameter -> node of its new value.

    Raises:
        ValueError: count is below 1.
    """
    if count < 1:
        raise ValueError("accumulate: %d steps; hint: 1 or more" % count)
    counter = _counter(name)
    is_last = ops.equal(counter, count - 1)
    updates, means = {counter: ops.where(is_last, 0, _next(counter))}, []
    for p, grad in _pairs(parameters, grads):
        total = parameter("%s.%s.total" % (name, p.name), like=p)
        means.append((total + grad) * (1.0 / count))
        updates[total] = ops.where(is_last, 0.0, total + grad)
    for p, new in optimiser(means).items():
        updates[p] = ops.where(is_last, new, p)
    return updates


def constant(rate):
    """Always the same rate."""
    return lambda counter: ops.as_node(float(rate))


def step_decay(rate, every, factor=0.1):
    """The rate times `factor` once more after each `every` steps.

    Raises:
        ValueError: factor is not above 0 and below 1.
    """
    if not 0 < factor < 1:
        raise ValueError("step_decay: the factor is %s; hint: above 0, below 1" % factor)
    ends = np.arange(1, math.ceil(math.log(_SMALLEST) / math.log(factor)) + 1) * every

    def schedule(counter):
        passed = ops.sum(ops.greater_equal(counter, ends))
        return ops.exp(passed * math.log(factor)) * rate

    return schedule


def exponential(rate, factor):
    """The rate times `factor` once more after each step."""
    return lambda counter: ops.exp(counter * math.log(factor)) * rate


def cosine(rate, steps, least=0.0):
    """From the rate down to `least` along half a wave of the cosine, and then `least`."""
    times = np.arange(steps + 1)
    return table(least + (rate - least) * (1 + np.cos(times * (math.pi / steps))) / 2)


def table(rates):
    """The rate of step i is element i of an array; after its end, the last."""
    rates = np.asarray(rates, np.float64)

    def schedule(counter):
        place = ops.minimum(counter, rates.size - 1)
        return ops.sum(ops.where(ops.equal(np.arange(rates.size), place), rates, 0.0))

    return schedule


def warm_up(schedule, steps, start=0.0):
    """A schedule times a factor that rises from `start` to 1 in so many steps.

    `schedule` may be a number, which is then reached and kept.
    """
    schedule = schedule if callable(schedule) else constant(schedule)

    def warmed(counter):
        risen = start + counter * ((1.0 - start) / steps)
        return schedule(counter) * ops.minimum(risen, 1.0)

    return warmed


def _pairs(parameters, grads):
    parameters, grads = list(parameters), list(grads)
    if len(parameters) != len(grads):
        raise ValueError("%d parameters and %d gradients" % (len(parameters), len(grads)))
    return list(zip(parameters, grads))


def _counter(name):
    return parameter(name + ".steps", np.zeros((), np.int64))


def _next(counter):
    """counter + 1. A sum of the classic set would be no whole number."""
    return ops.as_node(counter) - np.asarray(-1)


def _rate(rate, name, counter=None):
    """(the rate as a node, the updates that it needs)."""
    if not callable(rate):
        return ops.as_node(rate if hasattr(rate, "op") else float(rate)), {}
    counter = counter or _counter(name)
    return rate(counter), {counter: _next(counter)}


def _one_minus_power(beta, count):
    """1 - beta ** count, to the last digits also where it is small.

    It is -expm1(count * log(beta)), and expm1(2 x) is 2 tanh(x) / (1 - tanh(x)).
    """
    if beta == 0:
        return ops.as_node(1.0)
    half = ops.tanh(count * (math.log(beta) / 2))
    return half * -2 / (1.0 - half)
