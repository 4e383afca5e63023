"""The training step as one thing: values, gradients and updates of parameters in one program.

    w = dlsys.parameter("w", numpy.zeros((784, 10)))
    loss = ops.cross_entropy(x @ w, labels)
    (grad,) = gradients(loss, [w])
    step = dlsys.compile([loss], updates={w: w - 0.1 * grad}, ctx=ndarray.cpu(0))
    (value,) = step({x: images, labels: classes})
    for (value,) in step.over({x: a, labels: b} for a, b in batches): ...
    (values,) = step.scan({x: images.reshape(-1, 100, 784), labels: classes.reshape(-1, 100)})
    step.explain()                                     # what was done to the graph
    print(step.profile({x: images, labels: classes}))  # how long each kernel takes
    dlsys.draw(step).save("step.svg")                  # what runs, kernel by kernel

Start at step.py. state.py keeps what a step updates, files.py saves it, runs.py executes, rounds.py
executes many at once, walks.py lets a step be called in the middle of `over` and from several
threads, graph.py copies the nodes, so that those of the user stay as they are.
measuring.py runs a step under the clock, profile.py says what it found, drawing.py draws graphs and
memory.
"""

from .drawing import draw as draw
from .state import parameter as parameter
from .step import Step as Step
from .step import compile as compile
