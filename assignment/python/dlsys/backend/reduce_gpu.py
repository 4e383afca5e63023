"""The GPU back end's reductions over axes: the Body of a kernel of gpu_reduce.cuh, from a key."""

import re

from dlsys.dtypes import C_NAMES

from .expressions import WAYS, named, signature
from .fused import Statement
from .fused_gpu import packs_at_once, statements_of


def source(
    name, by_rows, statements, results, stores, dtypes, kinds, still, given, overwrites, of_moments
):  # fmt: skip
    """Body and launcher of a FusedReduce, from its key."""
    body = _Body(name, statements, results, stores, dtypes, kinds, still, given, overwrites)
    if of_moments:
        call = "combine_moments<%s_body>" % name
    else:
        call = "reduce<%s_body, %s>" % (name, "true" if by_rows else "false")
    return "\n".join([*body.states(), *body.lines(), *body.launcher(call), ""])


def source_of_one(name, kind, code, dtypes, computed, by_rows, kinds):
    """The same of a Reduce."""
    (said, *kept) = statements_of(code, dtypes, computed)
    found = [(*said, True, kind), *((*each, True, "") for each in kept)]
    still, stores = (False,) * len(dtypes), (len(found) - 1,)
    return source(name, by_rows, found, 1, stores, dtypes, (0, *kinds), still, 0, False, False)


class _Body:
    """The lines of one Body. Operands are results, outputs of each element, and inputs."""

    def __init__(self, name, statements, results, stores, dtypes, kinds, still, given, overwrites):
        self._name, self._results, self._stores = name, results, stores
        self._statements = [Statement(*each) for each in statements]
        self._dtypes, self._kinds, self._still, self._given = dtypes, kinds, still, given
        self._types = [C_NAMES[dtype] for dtype in dtypes]
        self._apart = "" if overwrites else " __restrict__"
        #: Numbers of statements that are reduced, of those before, and of those behind.
        numbered = list(enumerate(self._statements))
        self._reduced = [i for i, each in numbered if each.way]
        self._before = [i for i, each in numbered if not each.of_row]
        self._behind = [i for i, each in numbered if each.of_row and not each.way]
        codes = " ".join(self._statements[i].code for i in (*self._before, *self._reduced))
        read = {int(number) for number in re.findall(r"@i(\d+)@", codes)}
        #: Numbers of inputs that are read of each element.
        self._read = sorted(read)

    def states(self):
        """The State: one of each reduced statement. As a whole it is a Way."""
        return [
            "struct %s_ways {" % self._name,
            *("  typedef %s W%d;" % (self._way(i), i) for i in self._reduced),
            "  struct alignas(4) State {",
            *("    W%d::State v%d;" % (i, i) for i in self._reduced),
            "  };",
            "  struct Value {",
            *("    %s v%d;" % (C_NAMES[self._statements[i].dtype], i) for i in self._reduced),
            "  };",
            self._made("start()", "start()"),
            self._made("of(const Value& x)", "of(x.v%d)"),
            "  template <class Moments>",
            self._made("of_moments(const Moments& x)", "of_moments(x)"),
            self._made("both(const State& a, const State& b)", "both(a.v%d, b.v%d)"),
            "  template <int count, int step>",
            "  DLSYS_INLINE static State of_some(const Value* x) {",
            *(
                "    %s y%d[count];" % (C_NAMES[self._statements[i].dtype], i)
                for i in self._reduced
            ),
            "    for (int i = 0; i < count; ++i) {",
            *("      y%d[i] = x[i * step].v%d;" % (i, i) for i in self._reduced),
            "    }",
            "    return {%s};" % ", ".join("W%d::of_some(y%d)" % (i, i) for i in self._reduced),
            "  }",
            "};",
            "",
        ]

    def _way(self, number):
        each = self._statements[number]
        of = C_NAMES[each.dtype]
        if each.way == "moment":
            return "Moment<%s>" % of
        return "Gathered<%s<%s>, %s>" % (WAYS[each.way], of, of)

    def _made(self, head, call):
        """A function that makes a State, member by member."""
        calls = ", ".join("W%d::%s" % (i, call.replace("%d", str(i))) for i in self._reduced)
        return "  DLSYS_INLINE static State %s { return {%s}; }" % (head, calls)

    def lines(self):
        """The Body."""
        outputs, inputs = self._numbered()
        stride = ["s"] if "s" in self._kinds[self._results :] else []
        moving = [number for number in inputs.values() if not self._still[number]]
        at_once = packs_at_once([self._dtypes[i] for i in moving if self._kinds[i] == 1])
        return [
            "struct %s_body : %s_ways {" % (self._name, self._name),
            "  static constexpr int kOperands = %d, kResults = %d, kAtOnce = %d;"
            % (len(self._dtypes), self._results, at_once),
            "  static constexpr bool kPacks = %s;" % ("false" if stride else "true"),
            *("  %s* out%d;" % (self._types[i], i) for i in range(self._results)),
            *("  %s*%s out%d;" % (self._types[i], self._apart, i) for i in outputs),
            *(
                "  const %s*%s in%d;" % (self._types[i], self._apart, i - len(self._stores))
                for i in range(len(self._stores), len(self._dtypes))
            ),
            *("  double p%d;" % i for i in range(self._given)),
            *self._reading("Still", "still", inputs, True),
            *self._reading("Read", "read", inputs, False),
            *self._each(outputs, inputs),
            *self._one(outputs, inputs),
            *self._store(),
            "};",
            "",
        ]

    def _numbered(self):
        """(operand numbers of the outputs of each element, input -> operand of those read)."""
        outputs = range(self._results, len(self._stores))
        return outputs, {i: len(self._stores) + i for i in self._read}

    def _from(self, number):
        return "from[%d]" % (number - self._results)

    def _reading(self, kind, called, inputs, still):
        """The inputs that stand still, or those that move: their type, and a function."""
        members, reads = [], []
        for i, number in inputs.items():
            of = self._types[number]
            if self._still[number] != still:
                continue
            if self._kinds[number] == 0:
                members.append("    %s x%d;" % (of, i))
                reads.append("    found.x%d = in%d[%s];" % (i, i, self._from(number)))
            else:
                members.append("    Pack<%s> x%d;" % (of, i))
                read = "    found.x%d = *reinterpret_cast<const Pack<%s>*>(in%d + %s);"
                reads.append(read % (i, of, i, self._from(number)))
        return [
            "  struct %s {" % kind, *members, "  };",
            "  __device__ %s %s(const int64_t* from) const {" % (kind, called),
            "    %s found;" % kind, *reads, "    return found;", "  }",
        ]  # fmt: skip

    def _each(self, outputs, inputs):
        words = {
            i: "%s.x%d%s" % ("still" if self._still[number] else "read", i,
                             "" if self._kinds[number] == 0 else ".values[j]")
            for i, number in inputs.items()
        }  # fmt: skip
        return [
            "  __device__ void each(const Read& read, const Still& still, const int64_t* from,",
            "                       Value* values) const {",
            *("    Pack<%s> result%d;" % (self._types[i], i) for i in outputs),
            "#pragma unroll",
            "    for (int j = 0; j < kPack; ++j) {",
            *("      " + line for line in self._values(words, "values[j]")),
            *("      result%d.values[j] = v%d;" % (i, self._stores[i]) for i in outputs),
            "    }",
            *(
                "    *reinterpret_cast<Pack<%s>*>(out%d + %s) = result%d;"
                % (self._types[i], i, self._from(i), i)
                for i in outputs
            ),
            "  }",
        ]

    def _one(self, outputs, inputs):
        words = {i: "in%d[%s]" % (i, self._from(number)) for i, number in inputs.items()}
        return [
            "  __device__ Value one(const int64_t* from) const {",
            "    Value value;",
            *("    " + line for line in self._values(words, "value")),
            *("    out%d[%s] = v%d;" % (i, self._from(i), self._stores[i]) for i in outputs),
            "    return value;",
            "  }",
        ]

    def _values(self, words, into):
        """Statements on one element; `words` are those for the inputs' elements."""
        names = {"i%d" % i: word for i, word in words.items()}
        lines = []
        for i, each in enumerate(self._statements):
            if each.of_row and not each.way:
                continue
            of = C_NAMES[each.dtype]
            said = "static_cast<%s>(%s);" % (of, named(each.code, names))
            if each.way:
                lines.append("%s.v%d = %s" % (into, i, said))
            else:
                lines.append("const %s v%d = %s" % (of, i, said))
                names["v%d" % i] = "v%d" % i
        return lines

    def _store(self):
        """What is made of the whole state of an output, by one thread."""
        names, first = {}, len(self._stores)
        for i in range(len(self._dtypes) - first):
            names["i%d" % i] = "in%d[at[%d]]" % (i, first + i)
        lines = []
        for i in self._reduced:
            lines.append("const %s v%d = W%d::result(state.v%d);" % (
                C_NAMES[self._statements[i].dtype], i, i, i))  # fmt: skip
            names["v%d" % i] = "v%d" % i
        for i in self._behind:
            each = self._statements[i]
            of = C_NAMES[each.dtype]
            said = named(each.code, names)
            lines.append("const %s v%d = static_cast<%s>(%s);" % (of, i, of, said))
            names["v%d" % i] = "v%d" % i
        lines += ["out%d[at[%d]] = v%d;" % (i, i, self._stores[i]) for i in range(self._results)]
        return [
            "  __device__ void store(const int64_t* at, const State& state) const {",
            *("    " + line for line in lines),
            "  }",
        ]

    def launcher(self, call):
        """The function of the instruction, which calls such a one."""
        outputs, pointers = len(self._stores), []
        for i, of in enumerate(self._types):
            const, word = ("", "out%d" % i) if i < outputs else ("const ", "in%d" % (i - outputs))
            line = "body.%s = reinterpret_cast<%s%s*>(data[%d]);"
            pointers.append(line % (word, const, of, i))
        lines = [
            "%s_body body;" % self._name,
            *pointers,
            *("body.p%d = number[%d];" % (i, i) for i in range(self._given)),
            "return %s(data, n, body, data[%d], on);" % (call, len(self._dtypes)),
        ]
        head = signature(self._name, "cudaStream_t on") + " {"
        return [head, *("  " + line for line in lines), "}"]
