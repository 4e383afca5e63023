"""What is known while a kernel is made: the random numbers, names in sight, and what it may do."""

import contextlib
import random
import re
from collections import Counter
from dataclasses import dataclass, field

from .number_types import COMMON, SPELLINGS
from .tree import Node

NAMES = [
    "acc",
    "sum",
    "val",
    "tmp",
    "cnt",
    "res",
    "cur",
    "best",
    "total",
    "part",
    "left",
    "right",
    "lo",
    "hi",
    "mid",
    "step",
    "pos",
    "off",
    "idx2",
    "c",
    "d",
    "e",
    "f",
    "g",
    "h",
    "p",
    "q",
    "r",
    "s",
    "t",
    "u",
    "v",
    "w",
    "z",
    "a0",
    "b0",
    "x0",
    "y0",
    "aa",
    "bb",
    "cc",
    "first",
    "last",
    "prev",
    "next",
    "state",
    "bits",
    "mask",
    "key",
    "score",
    "w0",
    "w1",
]

#: Productions that every kernel may use.
ALWAYS = {
    "change",
    "declaration",
    "plain",
    "block",
    "name",
    "literal",
    "arithmetic",
    "scalar",
    "exchange",
    1,
}


@dataclass
class Name:
    """Something declared: a scalar, an array, a struct, a pointer or a lambda."""

    name: str
    type: str
    form: str = "scalar"  # or array, struct, pointer
    length: int = 0
    writable: bool = True
    uniform: bool = False
    struct: object = None
    real: bool = False  # an array itself, no pointer to it
    counter: bool = False  # of a loop, which nothing else may change

    binding: bool = False  # a structured binding, which C++17 lets no lambda capture
    low: float = None
    high: float = None


@dataclass
class Context:
    """One kernel in the making."""

    seed: int
    counts: Counter = field(default_factory=Counter)

    def __post_init__(self):
        self.random = random.Random(self.seed)
        self.refusing = self.random.choice([0, 0.4, 0.7, 0.9])
        self.allowed = {}
        self.top = []  # what stands before the kernel
        self.macros = []  # names to #undef behind it
        self.scopes = [[]]
        self.taken = set()
        self.uniform = True  # whether all threads of the block are here
        self.only_uniform = False  # whether an expression must be the same for all threads
        self.trips = 1
        self.loops = []  # "free", "uniform" or "switch", innermost last
        self.barriers = False  # whether threads still meet at barriers
        self.no_return = False
        self.in_lambda = False
        self.own_index = ""  # an index that is below 1000 and below n
        self.own = []  # (text, type) of elements that belong to the thread
        self.shared, self.shared_lines, self.dynamic = [], [], None
        self.sync_first = self.chance(0.3)
        self.tid = self.size = ""
        self.counts_of_all = []  # arrays that all threads add to
        self.structs = []
        self.functions = {}
        self.number = 0
        self.inputs = []  # readable arrays: parameters, constants, tables
        self.budget = 12
        self.fibers = False  # whether threads wait for each other
        self.full_warps = False

    # Choices

    def note(self, production):
        """Counts a production of the grammar."""
        self.counts[production] += 1

    def chance(self, probability):
        """True with a probability."""
        return self.random.random() < probability

    def pick(self, items):
        """One of several."""
        return self.random.choice(list(items))

    def integer(self, low, high):
        """An integer from low to high, both included."""
        return self.random.randint(low, high)

    def weighted(self, weights):
        """One of the keys of a dictionary of weights."""
        names = list(weights)
        allowed = [weights[name] * self.allows(name) for name in names]
        if not any(allowed):
            allowed = [weights[name] for name in names]
        return self.random.choices(names, allowed)[0]

    def allows(self, name):
        """Whether this kernel may use a production: most kernels lack many, so that what one
        production breaks is not hidden by another that the emulator does not take."""
        if name in ALWAYS or name in COMMON:
            return True
        if name not in self.allowed:
            self.allowed[name] = self.random.random() >= self.refusing
        return self.allowed[name]

    def type(self, without=()):
        """An arithmetic type."""
        return self.weighted({k: w for k, w in COMMON.items() if k not in without})

    def spelled(self, name):
        """A spelling of a type."""
        return self.pick(SPELLINGS.get(name, [name]))

    # Names

    def unique(self, stem):
        """A name that nothing else in the file has."""
        self.number += 1
        return f"{stem}_{self.seed}_{self.number}"

    def fresh(self):
        """A name for a local variable, new in all scopes."""
        for _ in range(20):
            name = self.pick(NAMES)
            if name not in self.taken:
                self.taken.add(name)
                return name
        self.number += 1
        return f"v{self.number}"

    def declare(self, name):
        """Brings a name into sight."""
        self.scopes[-1].append(name)
        return name

    @contextlib.contextmanager
    def scope(self):
        """Names that end with a block."""
        self.scopes.append([])
        yield
        self.scopes.pop()

    @contextlib.contextmanager
    def part_of_a_block(self):
        """Names that end with lines of the preprocessor, which begin no block: they hide none of
        the block's own names."""
        self.scopes.append(list(self.scopes[-1]))
        yield
        self.scopes.pop()

    def names(self):
        """All names in sight."""
        found = {}
        for scope in self.scopes:
            for name in scope:
                found.pop(name.name, None)
                found[name.name] = name
        return list(found.values())

    @contextlib.contextmanager
    def setting(self, **values):
        """Changes attributes for a while."""
        old = {key: getattr(self, key) for key in values}
        for key, value in values.items():
            setattr(self, key, value)
        yield
        for key, value in old.items():
            setattr(self, key, value)

    # File scope

    def add_top(self, *parts):
        """Something at file scope, before the kernel."""
        self.top.append(Node(*parts, "\n", drop=True))

    def macro(self, stem, parameters, body):
        """Defines a macro, and gives its name."""
        name = self.unique(stem)
        self.macros.append(name)
        body = re.sub(r"\n", " \\\\\n", body)
        self.add_top(f"#define {name}{parameters} {body}")
        return name
