"""The arithmetic types of C++ that kernels use, and what may be stored in them.

Signed integers stay far from overflow: what is stored is at most STORED, what is added in one step
at most STEP, and a reader may count on READ. Unsigned ones, and those that are narrower than int,
wrap around, which is defined.
"""

from dataclasses import dataclass

ELEMENTS = 2048  # of every array, see harness.h
STORED, STEP, READ = 2**20, 2**10, 2**23


@dataclass(frozen=True)
class Kind:
    """What the grammar knows of a type."""

    bits: int
    signed: bool = True
    real: bool = False

    @property
    def wraps(self):
        """Whether any integer may be assigned and any step added."""
        return not self.real and (not self.signed or self.bits < 32)

    @property
    def narrow(self):
        """Whether it is a signed integer that is narrower than int. It wraps around, but nvcc
        believes that its `++` and `--` do not: in `if (++c > 2) c--;` a `char` of 127 stays 127."""
        return self.signed and not self.real and self.bits < 32

    @property
    def range(self):
        """The smallest and the largest value that a reader may see."""
        if self.real:
            return -float(READ), float(READ)
        if self.bits == 1:
            return 0, 1
        if not self.signed:
            return 0, 2**self.bits - 1
        return (
            (-READ, READ)
            if self.bits >= 32
            else (-(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1)
        )


KINDS = {
    "bool": Kind(1, False),
    "signed char": Kind(8),
    "char": Kind(8),
    "unsigned char": Kind(8, False),
    "short": Kind(16),
    "unsigned short": Kind(16, False),
    "int": Kind(32),
    "unsigned": Kind(32, False),
    "long long": Kind(64),
    "size_t": Kind(64, False),  # unsigned long, another type than the next
    "unsigned long long": Kind(64, False),
    "float": Kind(32, real=True),
    "double": Kind(64, real=True),
}

#: How often each is chosen.
COMMON = {
    "int": 8,
    "unsigned": 8,
    "float": 8,
    "long long": 2,
    "unsigned long long": 2,
    "size_t": 1,
    "short": 2,
    "unsigned short": 1,
    "signed char": 1,
    "unsigned char": 2,
    "char": 1,
    "double": 1,
}

SPELLINGS = {
    "unsigned": ["unsigned", "unsigned int", "unsigned", "uint32_t", "unsigned int"],
    "long long": ["long long", "long long int", "signed long long"],
    "unsigned long long": ["unsigned long long", "unsigned long long int"],
    "size_t": ["size_t", "size_t", "unsigned long", "unsigned long int"],
    "short": ["short", "int16_t", "short int"],
    "unsigned short": ["unsigned short", "uint16_t"],
    "unsigned char": ["unsigned char", "uint8_t"],
    "signed char": ["signed char", "int8_t"],
    "int": ["int", "int", "int", "int", "int32_t", "signed", "signed int"],
}


#: Of two operands the one that stands first here decides.
RANKS = ("double", "float", "unsigned long long", "size_t", "long long", "unsigned", "int")


def promoted(name):
    """The type that an operand has in arithmetic."""
    kind = KINDS[name]
    return name if kind.real or kind.bits >= 32 else "int"


def common_type(a, b):
    """The type of a + b."""
    a, b = promoted(a), promoted(b)
    if {a, b} == {"size_t", "long long"}:
        return "unsigned long long"
    for name in RANKS:
        if name in (a, b):
            return name
    raise AssertionError(f"no common type of {a} and {b}")


def limits(name):
    """What a value of this type may be at all, in an expression."""
    kind = KINDS[name]
    if kind.real:
        return -1e30, 1e30
    if kind.signed:
        return -(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1) - 1
    return kind.range
