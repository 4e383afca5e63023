"""The CPU back end's form of a fused kernel: one loop over elements, or one over rows."""

from dlsys.dtypes import C_NAMES

from .expressions import WAYS, indented, named


def body(columns, statements, stores, dtypes, of_rows, kinds, still, given, overwrites):
    """The body of the function of a Fused, from its key."""
    outputs = len(stores)
    lines = []
    for number, dtype in enumerate(dtypes):
        const, name = ("", "out%d" % number) if number < outputs else ("const ", "in%d" % (
            number - outputs))  # fmt: skip
        typed = const + C_NAMES[dtype]
        lines.append(
            "%s* const %s = reinterpret_cast<%s*>(data[%d]);" % (typed, name, typed, number)
        )
    lines += ["const double p%d = number[%d];" % (i, i) for i in range(given)]
    make = _of_rows if columns else _of_elements
    return indented(lines + make(columns, statements, stores, dtypes, of_rows, kinds))


def _of_elements(columns, statements, stores, dtypes, of_rows, kinds):
    outputs = len(stores)

    def at(number):
        place = {0: "0", 1: "i", "s": "i * steps[%d]" % number}[kinds[number]]
        return "from[%d] + %s" % (number, place)

    names = {"i%d" % i: "e%d" % i for i in range(len(dtypes) - outputs)}
    names.update(("v%d" % i, "v%d" % i) for i in range(len(statements)))
    loop = [
        "const %s e%d = in%d[%s];" % (C_NAMES[dtype], i, i, at(outputs + i))
        for i, dtype in enumerate(dtypes[outputs:])
    ]
    for i, (code, dtype, _, _) in enumerate(statements):
        type_name = C_NAMES[dtype]
        loop.append("const %s v%d = static_cast<%s>(%s);" % (
            type_name, i, type_name, named(code, names)))  # fmt: skip
    loop += ["out%d[%s] = v%d;" % (i, at(i), value) for i, value in enumerate(stores)]
    return [
        "for_pieces<%d>(n, [=](const int64_t* from, const int64_t* steps, int64_t count) {"
        % len(dtypes),
        "#pragma omp simd",
        "  for (int64_t i = 0; i < count; ++i) {",
        *("    " + line for line in loop),
        "  }",
        "});",
        "return 0;",
    ]


def _of_rows(columns, statements, stores, dtypes, of_rows, kinds):
    outputs = len(stores)

    def at(number):
        place = {0: "", 1: " + column", "s": " + column * inner[%d]" % number}[kinds[number]]
        return "at[%d]%s" % (number, "" if of_rows[number] else place)

    def loop(line):
        return [
            "#pragma omp simd",
            "  for (int64_t column = 0; column < %d; ++column) %s" % (columns, line),
        ]

    names, lines = {}, []
    for i, dtype in enumerate(dtypes[outputs:]):
        value, type_name = "in%d[%s]" % (i, at(outputs + i)), C_NAMES[dtype]
        is_one = of_rows[outputs + i]
        names["i%d" % i] = "e%d" % i if is_one else "e%d[column]" % i
        if is_one:
            lines.append("  const %s e%d = %s;" % (type_name, i, value))
        else:
            lines += [
                "  %s e%d[%d];" % (type_name, i, columns),
                *loop("e%d[column] = %s;" % (i, value)),
            ]
    for i, (code, dtype, of_row, way) in enumerate(statements):
        type_name, said = C_NAMES[dtype], named(code, names)
        names["v%d" % i] = "v%d" % i if of_row else "v%d[column]" % i
        if way:
            lines.append(
                "  const %s v%d = reduced<%s<%s>, %s>(%d, [&](int64_t column) {"
                % (type_name, i, WAYS[way], type_name, type_name, columns)
            )
            lines.append("    return static_cast<%s>(%s);" % (type_name, said))
            lines.append("  });")
        elif of_row:
            lines.append("  const %s v%d = static_cast<%s>(%s);" % (type_name, i, type_name, said))
        else:
            lines.append("  %s v%d[%d];" % (type_name, i, columns))
            lines += loop("v%d[column] = static_cast<%s>(%s);" % (i, type_name, said))
    for i, value in enumerate(stores):
        store = "out%d[%s] = %s;" % (i, at(i), names["v%d" % value])
        lines += ["  " + store] if of_rows[i] else loop(store)
    return [
        "const int64_t* inner = n;",
        "const Axes axes(inner, %d);" % len(dtypes),
        "for_items(axes.size(), axes.size() * %d, [=](int64_t row) {" % columns,
        "  int64_t at[%d] = {};" % len(dtypes),
        "  axes.add_offsets(row, axes.rank, %d, at);" % len(dtypes),
        *lines,
        "});",
        "return 0;",
    ]
