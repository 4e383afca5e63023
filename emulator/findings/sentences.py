"""Says in words what a finding is: who did what to which element, and the lines of source."""

import os
import struct

from findings.kinds import WORDS

NEIGHBOURS = 2  # lines quoted on each side


def many(number, what="byte"):
    """`4,000 bytes`, `1 byte`."""
    return "%s %s%s" % (format(number, ","), what, "" if number == 1 else "s")


def shown(path):
    """A path, from the working directory if it is below it."""
    relative = os.path.relpath(path) if os.path.isabs(path) else path
    return path if relative.startswith("..") else relative


def place_text(place):
    """`src/gpu_op.cu:12`."""
    return "%s:%d" % (shown(place.file), place.line) if place else "place unknown"


def index_text(index):
    """`(1, 0, 0)`."""
    return "(%s)" % ", ".join(str(i) for i in index)


def thread_text(block, thread):
    """`block (1, 0, 0), thread (2, 0, 0)`, or what of it is known."""
    known = [("block", block), ("thread", thread)]
    return ", ".join("%s %s" % (name, index_text(index)) for name, index in known if index)


def who_text(finding):
    """Who did it: a thread of a kernel, or the host."""
    if not finding.kernel:
        return thread_text(finding.block_index, finding.thread_index) or "the host"
    thread = thread_text(finding.block_index, finding.thread_index)
    return ", ".join(part for part in (kernel_text(finding), thread) if part)


def kernel_text(finding):
    """`kernel add`, or a function of cuBLAS."""
    if not finding.kernel:
        return "the program"
    return ("" if finding.kernel.startswith("cublas") else "kernel ") + finding.kernel


def name_text(memory):
    """A buffer's name, or what it is."""
    if memory is None:
        return "memory"
    if memory.name:
        return "`%s`" % memory.name
    if memory.size <= 0:
        return "%s memory" % memory.space
    return "a buffer of %s in %s memory" % (many(memory.size), memory.space)


def sized_text(memory):
    """A buffer's name and size."""
    named = memory is not None and memory.name and memory.size > 0
    return name_text(memory) + (" (%s)" % many(memory.size) if named else "")


def element_text(memory, size):
    """The element at the offset: "`out`[1000]", or "byte 4001 of `out`"."""
    if memory is None:
        return "an address of no known buffer"
    if not memory.name and memory.size <= 0:
        return "an address in %s" % name_text(memory)
    if memory.name and size in (1, 2, 4, 8) and memory.offset % size == 0:
        return "%s[%d]" % (name_text(memory), memory.offset // size)
    return "byte %d of %s" % (memory.offset, name_text(memory))


def size_text(memory, size):
    """ "`out` has 4,000 bytes (1,000 of 4 bytes)"."""
    elements = size in (2, 4, 8, 16) and memory.size % size == 0
    inside = " (%s of %s)" % (format(memory.size // size, ","), many(size)) if elements else ""
    name = name_text(memory) if memory.name else "the buffer"
    return "%s has %s%s" % (name, many(memory.size), inside)


def distance_text(memory, size):
    """How far from a buffer an access outside of it is."""
    if memory is None or memory.size <= 0:
        return ""
    if memory.offset < 0:
        where = "%s before its start" % many(-memory.offset)
    elif memory.offset >= memory.size:
        where = "%s past its end" % many(memory.offset - memory.size)
    elif memory.offset + size > memory.size:
        where = "%s of them past its end" % format(memory.offset + size - memory.size, ",")
    else:
        return "; %s" % size_text(memory, size)
    return ", %s: %s" % (where, size_text(memory, size))


def access_text(finding):
    """`kernel add, block .., thread .. writes 4 bytes at ...`."""
    size = many(finding.size) if finding.size else "memory"
    what = "writes" if finding.write else "reads"
    element = element_text(finding.memory, finding.size)
    return "%s %s %s at %s" % (who_text(finding), what, size, element)


def other_text(finding):
    """`, and block .., thread .. reads it; nothing says which comes first`."""
    other = finding.other
    what = "writes" if other.write else "reads"
    who = thread_text(other.block_index, other.thread_index)
    if finding.kind.startswith("race"):
        return ", and %s %s it; nothing says which comes first" % (who or "another thread", what)
    who = "%s of a kernel" % who if who else "a kernel or copy"
    return ", while %s that may not be done %s it" % (who, what)


def why_text(finding):
    """What is wrong with the access, in a few words that follow it."""
    kind, memory = finding.kind, finding.memory
    if kind.startswith("out-of-bounds"):
        return distance_text(memory, finding.size)
    if kind.startswith("misaligned") and finding.size:
        return ", which %d does not divide" % finding.size
    if kind.startswith("uninitialised"):
        return ", which nobody wrote before"
    if kind == "row overrun":
        return ", past the end of its row"
    if kind == "use after free":
        return ", which was freed"
    if kind in ("host pointer in kernel", "device pointer on host"):
        if memory is None or not memory.name:
            return ""  # said already
        return ", memory of the %s" % ("host" if "kernel" in kind else "device")
    if kind == "unsynchronised access" and finding.other is not None:
        return ", which work under way %s" % ("writes" if finding.other.write else "reads")
    if kind == "unordered nodes of a graph" and finding.other is not None:
        does = "writes" if finding.other.write else "reads"
        return ", which another node %s in no order with this one" % does
    return other_text(finding) if finding.other is not None else ""


def template_text(finding):
    """The sentence of a kind that is not the access of one thread."""
    kernel, memory = kernel_text(finding), finding.memory
    passed = "another thread of its block went past"
    return WORDS[finding.kind].sentence.format(
        who=who_text(finding),
        kernel=kernel,
        lanes="%s: lanes of one warp" % kernel,
        a_block="a block of %s" % kernel,
        launch="the launch of %s" % kernel if finding.kernel else "a launch",
        others=passed if finding.other else "other threads of its block never reach",
        sized=sized_text(memory),
        element=element_text(memory, finding.size),
        start=", from its byte %d" % memory.offset if memory and memory.offset > 0 else "",
        size=many(finding.size) if finding.size else "more bytes than there are",
    )


def sentence(finding):
    """What happened, with the values at hand."""
    if WORDS[finding.kind].sentence:
        text = template_text(finding)
    elif finding.kind == "row overrun" and not finding.size:
        text = "%s uses an index that its dimension does not have" % who_text(finding)
    else:
        text = access_text(finding) + why_text(finding)
    return text + (" (%s)" % finding.detail if finding.detail else "") + "."


class Sources:
    """Quotes source files, and reads each once."""

    def __init__(self):
        self.files = {}

    def quote(self, place):
        """The line of a place with its neighbours, numbered; [] if the file can't be read."""
        if place is None:
            return []
        if place.file not in self.files:
            self.files[place.file] = self.read(place.file)
        lines, quoted = self.files[place.file], []
        if place.line > len(lines):
            return []
        for number in range(place.line - NEIGHBOURS, place.line + NEIGHBOURS + 1):
            if 1 <= number <= len(lines):
                mark = ">" if number == place.line else " "
                quoted.append("%s %4d | %s" % (mark, number, lines[number - 1].rstrip()))
        return [line.rstrip() for line in quoted]

    @staticmethod
    def read(path):
        """The lines of a file, none if it can't be read."""
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read().split("\n")
        except OSError:
            return []


def place_lines(label, place, sources):
    """A label with a place, and the source below it."""
    return ["%s %s" % (label, place_text(place))] + ["  " + line for line in sources.quote(place)]


def call_lines(finding):
    """Where the functions were called in which it happened, up to the kernel."""
    last = len(finding.calls) - 1
    of_kernel = " in %s" % kernel_text(finding) if finding.kernel else ""
    return [
        "called at %s%s" % (place_text(place), of_kernel if i == last else "")
        for i, place in enumerate(finding.calls)
    ]


def other_lines(finding, sources):
    """Where the other thread was, with the source unless it is quoted already."""
    other = finding.other
    if other is None:
        return []
    who = thread_text(other.block_index, other.thread_index)
    if finding.kind == "barrier not reached":
        label = "%s went on to" % (who or "another thread")
    elif finding.kind == "unwritten result":
        label = "the host reads it at"
    elif finding.kind in ("different barriers", "barriers of two warps", "lanes missing"):
        label = "%s waits at" % (who or "another thread")
    else:
        label = "the other access,%s at" % (" by %s," % who if who else "")
    if other.at is not None and other.at == finding.at:
        return [label + " the same line"]
    return place_lines(label, other.at, sources)


def launch_text(finding):
    """`launched at main.cu:5 with grid (4, 1, 1), block (256, 1, 1)`."""
    shape = [
        "%s %s" % (name, index_text(value))
        for name, value in (("grid", finding.grid), ("block", finding.block))
        if value
    ]
    shape = " with " + ", ".join(shape) if shape else ""
    return "launched at %s%s" % (place_text(finding.launch), shape)


def owner_lines(finding):
    """Where the buffer was allocated and freed, unless that is said already."""
    memory = finding.memory
    if memory is None or (finding.kind == "row overrun" and not finding.size):
        return []
    name = name_text(memory) if memory.name else "the buffer"
    places = ("allocated", memory.allocated), ("freed", memory.freed)
    return [
        "%s was %s at %s" % (name, what, place_text(place))
        for what, place in places
        if place and place != finding.at
    ]


def finding_lines(finding, sources):
    """All lines about a finding, the title first."""
    words = WORDS[finding.kind]
    lines = ["%s: %s" % (words.title, place_text(finding.at)), sentence(finding)]
    lines += place_lines("at", finding.at, sources) + call_lines(finding)
    if finding.also:
        lines.append("the same at " + ", ".join(place_text(place) for place in finding.also))
    lines += other_lines(finding, sources)
    if finding.kernel and finding.launch:
        lines.append(launch_text(finding))
    lines += owner_lines(finding)
    if finding.count > 1 and not finding.is_advice:
        more = format(finding.count - 1, ",")
        threads = "thread or time" if finding.count == 2 else "threads or times"
        lines.append("and %s more %s" % (more, threads))
    return lines + [words.cause, "hint: " + words.hint]


FORMATS = {1: ("<b",), 2: ("<e", "<h"), 4: ("<f", "<i"), 8: ("<d", "<q")}


def value_text(value):
    """Bytes as a floating-point number and as an integer; a vector as its words of 4 bytes."""
    if value is None:
        return "unknown"
    if len(value) in FORMATS:
        numbers = [struct.unpack(form, value)[0] for form in FORMATS[len(value)]]
        return " or ".join("%.9g" % n if isinstance(n, float) else str(n) for n in numbers)
    if len(value) % 4 == 0:
        words = [value[i : i + 4] for i in range(0, len(value), 4)]
        return ", ".join(value_text(word) for word in words)
    return value.hex()


def trace_text(trace):
    """One line about an access of a traced thread."""
    what, sign = ("writes", "=") if trace.write else ("reads", "is")
    element = element_text(trace.memory, trace.size)
    return "%s: %s %s %s %s" % (
        place_text(trace.at), what, element, sign, value_text(trace.value)
    )  # fmt: skip
