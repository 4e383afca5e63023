"""How long each kernel of a step takes: as a table, as a picture, and for viewers of traces."""

import collections
import dataclasses
import json

import numpy as np

from dlsys.pictures.svg import shortened, size_said, time_said
from dlsys.pictures.timeline import Bar, timeline

#: (colour, what such kernels are called, the first words of their names; on numpy, of ops).
_FAMILIES = (
    ("blue", "fused kernels", ("fused",)),
    ("amber", "products", ("gemm", "product", "matmul", "mat_mul", "product_gradient")),
    ("green", "reductions", ("reduce", "sum", "mean", "unbroadcast", "reduce_sum_axis_zero")),
    ("violet", "functions of rows", (
        "rows", "softmax", "log_softmax", "cross_entropy", "softmax_cross_entropy",
    )),
    ("teal", "element-wise kernels", ("elementwise",)),
)  # fmt: skip
_TABLE_WIDTH, _LONGEST_NAME = 120, 300


@dataclasses.dataclass
class Kernel:
    """One launch of a step; on numpy one node.

    Attributes:
        name: what kind of kernel it is.
        nodes: names of the nodes whose values it computes, the last one last.
        stream: its number.
        read, written: bytes of memory, each counted once.
        times: of each run, in microseconds.
        begin, end: in the run that the timeline shows, in microseconds.
    """

    name: str
    nodes: tuple
    stream: int
    read: int
    written: int
    times: np.ndarray
    begin: float
    end: float

    @property
    def median(self):
        """Of the times."""
        return float(np.median(self.times))

    @property
    def quartiles(self):
        """(first, third) of the times."""
        return tuple(np.percentile(self.times, [25, 75]).tolist())

    @property
    def says(self):
        """The node that it computes, and how many more."""
        more = " (+%d)" % (len(self.nodes) - 1) if len(self.nodes) > 1 else ""
        return self.nodes[-1] + more


class Profile:
    """What `Step.profile` returns; printed, it is a table.

    Attributes:
        where: the device, in words.
        kernels: Kernels, in their order.
        wholes: what each run took from the first begin to the last end, in microseconds.
    """

    def __init__(self, where, kernels, wholes):
        self.where, self.kernels, self.wholes = where, kernels, np.asarray(wholes)

    @property
    def total(self):
        """The sum of the medians of all kernels, in microseconds."""
        return sum(kernel.median for kernel in self.kernels)

    def share(self, kernel):
        """The part of the total that a kernel takes, from 0 to 1."""
        return kernel.median / self.total if self.total else 0.0

    def longest(self, most=None):
        """[(place in the order, kernel)], those that take the most time first."""
        numbered = sorted(enumerate(self.kernels), key=lambda each: -each[1].median)
        return numbered[:most]

    def table(self, most=40):
        """Those kernels that take the most time, a line each, with their place in the order."""
        head = "%4s %6s %9s %17s %6s %8s %8s  " % (
            "#", "stream", "median us", "quartiles us", "share", "read", "written",
        )  # fmt: skip
        width = max([len(k.name) for k in self.kernels] + [6])
        lines = [*self.summary(), "", head + "kernel".ljust(width) + "  nodes"]
        shown = self.longest(most)
        for place, kernel in shown:
            line = "%4d %6d %9.1f %8.1f %8.1f %5.1f%% %8s %8s  " % (
                place, kernel.stream, kernel.median, *kernel.quartiles, 100 * self.share(kernel),
                size_said(kernel.read), size_said(kernel.written),
            )  # fmt: skip
            line += kernel.name.ljust(width) + "  "
            lines.append(line + shortened(kernel.says, max(16, _TABLE_WIDTH - len(line))))
        rest = [kernel.median for _, kernel in self.longest()[len(shown) :]]
        lines += ["and %d more: %.1f us" % (len(rest), sum(rest))] if rest else []
        return "\n".join([*lines, *self._streams()])

    def _streams(self):
        """A line for each stream, if there are several."""
        found = {}
        for kernel in self.kernels:
            found.setdefault(kernel.stream, []).append(kernel.median)
        lines = [
            "stream %d: %s, %.1f us" % (stream, _counted(len(times), "kernel"), sum(times))
            for stream, times in sorted(found.items())
        ]
        return lines if len(lines) > 1 else []

    __str__ = table

    def summary(self):
        """Two lines: how many kernels, on how many streams; and how long a run takes."""
        streams = len({kernel.stream for kernel in self.kernels})
        return (
            "%s: %s on %s"
            % (self.where, _counted(len(self.kernels), "kernel"), _counted(streams, "stream")),
            "median of %s: %s; the kernels alone: %s" % (
                _counted(len(self.wholes), "run"), time_said(float(np.median(self.wholes))),
                time_said(self.total),
            ),
        )  # fmt: skip

    def svg(self):
        """The run of median length in time, a lane for each stream; an Svg."""
        ordered = sorted(enumerate(self.kernels), key=lambda each: each[1].stream)
        bars = [
            Bar("stream %d" % k.stream, k.begin, k.end, "#%d %s" % (i, k.says),
                self._hint(i, k), _family(k)[0])
            for i, k in ordered
        ]  # fmt: skip
        counted = collections.Counter()
        for kernel in self.kernels:
            counted[_family(kernel)] += self.share(kernel)
        legend = {c: "%s, %.0f%%" % (words, 100 * part) for (c, words), part in counted.items()}
        lines = [
            "#%d %s, %.0f%%: %s, %s"
            % (i, time_said(k.median), 100 * self.share(k), k.name, shortened(k.says, 24))
            for i, k in self.longest(5)
        ]
        return timeline(*self.summary(), bars, legend, ["The longest:", *lines] if lines else [])

    def _repr_svg_(self):
        return str(self.svg())

    def trace(self):
        """The same run in the Trace Event format: a dict to be written as JSON."""
        # Viewers take process and thread 0 for what runs when nothing runs.
        streams = sorted({kernel.stream for kernel in self.kernels})
        named = [("process_name", 1, "dlsys step, %s" % self.where)]
        named += [("thread_name", 1 + each, "stream %d" % each) for each in streams]
        events = [
            {"name": what, "ph": "M", "pid": 1, "tid": thread, "args": {"name": name}}
            for what, thread, name in named
        ]
        for place, kernel in enumerate(self.kernels):
            # Whole nanoseconds: by rounding, no two of a lane come to overlap.
            begin, end = (int(1000 * each) for each in (kernel.begin, kernel.end))
            events.append(
                {
                    "name": kernel.says, "cat": kernel.name, "ph": "X", "pid": 1,
                    "tid": 1 + kernel.stream, "ts": begin / 1000, "dur": (end - begin) / 1000,
                    "args": {
                        "number": place, "kernel": kernel.name, "nodes": list(kernel.nodes),
                        "median us": kernel.median, "quartiles us": list(kernel.quartiles),
                        "share": self.share(kernel), "bytes read": kernel.read,
                        "bytes written": kernel.written,
                    },
                }
            )  # fmt: skip
        return {"traceEvents": events, "displayTimeUnit": "ns"}

    def save(self, path):
        """Writes the trace, which https://ui.perfetto.dev and chrome://tracing open.

        Raises:
            OSError: it can't be written.
        """
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.trace(), file, allow_nan=False)

    def _hint(self, place, kernel):
        rows = [
            "#%d %s, stream %d" % (place, kernel.name, kernel.stream),
            shortened(", ".join(kernel.nodes), _LONGEST_NAME),
            "median %s, quartiles %s and %s, %.1f%%" % (
                time_said(kernel.median), *map(time_said, kernel.quartiles),
                100 * self.share(kernel),
            ),
            "reads %s, writes %s" % (size_said(kernel.read), size_said(kernel.written)),
        ]  # fmt: skip
        return "\n".join(rows)


def _family(kernel):
    """(colour, what such kernels are called)."""
    first = kernel.name.partition(" ")[0]
    return next(((c, said) for c, said, words in _FAMILIES if first in words), ("grey", "other"))


def _counted(count, noun):
    return "%d %s%s" % (count, noun, "" if count == 1 else "s")
