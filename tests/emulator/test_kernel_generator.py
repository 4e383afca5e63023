"""Random kernels end the same in every way to run them; see kernel_generator/__main__.py.

Hours of it: `python -m kernel_generator --seeds 0:100000 --jobs 2` from the folder tests.
"""

import re
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from kernel_generator import builds, campaign, changes, expressions, runner  # noqa: E402
from kernel_generator.context import Context, Name  # noqa: E402
from kernel_generator.indices import flat_index  # noqa: E402
from kernel_generator.kernel import make_kernel  # noqa: E402
from kernel_generator.layout import messy  # noqa: E402
from kernel_generator.number_types import KINDS  # noqa: E402
from kernel_generator.program import cuda_program, oracle_program  # noqa: E402
from shares import share  # noqa: E402

FOUND = Path(builds.HERE / "found")
# In these batches no kernel has overloads that keep all others from being loops.
BATCH, FIRST = 60, 2_000_360
BATCHES = 4
HOST_CONSTANT = re.compile(
    r"^(const int|constexpr unsigned|template <typename T> constexpr T) (\w+) = ", re.MULTILINE
)
STEPS = re.compile(r"(?:\+\+|--)[(*]*(\w+)|(\w+)[\])]*(?:\+\+|--)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.getbasetemp().parent / "kernel_generator"


def told(report):
    return "\n".join(f"seed {d.seed}: {d.kind}: {d.detail[:400]}" for d in report.disagreements)


@pytest.mark.parametrize("number", share(range(BATCHES), 2))
def test_kernels_end_the_same_in_every_way(folder, number):
    first = FIRST + number * BATCH
    kernels = [make_kernel(seed) for seed in range(first, first + BATCH)]
    report = runner.Runner(folder).run(kernels, f"batch{first}")
    assert not report.disagreements, told(report)
    assert report.launches == 2 * BATCH
    fast = sum(count for way, count in report.ways.items() if way.startswith("loops"))
    assert fast >= BATCH // 10, report.ways


def test_the_checked_build_agrees_and_finds_nothing(folder):
    kernels = [make_kernel(seed) for seed in range(505_000, 505_024)]
    report = runner.Runner(folder, checked=True, explain=False).run(kernels, "checked")
    assert not report.disagreements, told(report)


@pytest.fixture(scope="module")
def compiler(folder):
    return builds.compiler(folder)


@pytest.mark.parametrize("path", sorted(FOUND.glob("*.cu")), ids=lambda path: path.stem)
def test_what_was_found_once_stays_right(compiler, path):
    text = path.read_text()
    program = compiler.program_of(text, f"found_{path.stem}")
    for case in re.findall(r"^CASE\((\w+)\)", text, re.MULTILINE):
        for loops in ("1", "0"):
            done = compiler.call(program, case, env={"EMULATOR_LOOPS": loops})
            assert done.returncode == 0, f"{case}, EMULATOR_LOOPS={loops}: {done.stderr}"
    compiler.clean(f"found_{path.stem}")


def test_a_seed_makes_the_same_kernel_each_time():
    first, second = (cuda_program([make_kernel(seed) for seed in range(30)]) for _ in range(2))
    assert first.text == second.text
    assert oracle_program([make_kernel(3)]).text != oracle_program([make_kernel(4)]).text


def test_no_production_of_the_grammar_is_dead():
    total = runner.Report()
    for seed in range(3000):
        total.productions.update(make_kernel(seed).counts)
    assert campaign.summary(total).splitlines()[-1].endswith("never used: none")


def test_constants_of_the_host_are_used_as_values_alone():
    """A reference to one would need the host's variable, which no GPU has."""
    found = 0
    for seed in range(250):
        kernel = make_kernel(seed)
        text = kernel.top.text() + kernel.code.text()
        for form, name in HOST_CONSTANT.findall(kernel.top.text()):
            word = name + "<int>" * form.startswith("template")
            values = text.count(f"(+{word})")
            assert values == text.count(word) - (word == name), f"seed {seed}: {word}"
            found += values
    assert found > 20


def of_all_types(seed):
    """A context with a variable of each type."""
    g = Context(seed)
    for number, t in enumerate(KINDS):
        g.taken.add(f"of_{number}")
        g.declare(Name(f"of_{number}", t))
    return g


def test_an_expression_has_the_type_that_the_grammar_takes_it_for(folder):
    """Else `auto` and a pointer to it are refused, as of size_t for unsigned long long."""
    parts = ['#define KERNEL_ORACLE\n#include <type_traits>\n#include "harness.h"\n']
    parts += ["template <typename T, typename V>\n"]
    parts += ["void is(V) { static_assert(std::is_same_v<T, V>); }\nint main() {}\n"]
    variables = "".join(f"{t} of_{number} = 1; " for number, t in enumerate(KINDS))
    for seed in range(30):
        g = of_all_types(seed)
        index, name, kind = flat_index(g)
        g.declare(Name(name, kind))
        values = [expressions.value(g, 3) for _ in range(20)]
        lines = "".join(f"  is<{v.type}>({v.node});\n" for v in values)
        parts += [*map(str, g.top), f"void seed_{seed}() {{\n  {variables}\n"]
        parts += [*index, "\n", lines, "}\n"]
    builds.Oracle(folder).program_of("".join(parts), "types")


@pytest.mark.parametrize("t", [t for t, kind in KINDS.items() if kind.narrow])
def test_narrow_integers_do_not_step_over_their_edge(t):
    """nvcc believes that `++` and `--` of them never wrap around."""
    steps = 0
    for seed in range(1000):
        g = of_all_types(seed)
        place = next(n.name for n in g.names() if n.type == t)
        text = str(changes.change(g, place, t)) + "".join(map(str, g.top))
        counters = {"k_", *re.findall(r"int (\w+) = 0; again", text)}
        stepped = {a or b for a, b in STEPS.findall(text)} - counters
        assert not stepped or "&= 63;" in text, f"seed {seed}: {text}"
        steps += len(stepped)
    assert steps > 20


def test_unusual_formatting_changes_no_token():
    text = make_kernel(7).code.text()
    plain = " ".join(re.sub(r"//[^\n]*", " ", text).split())
    strange = re.sub(
        r"/\*.*?\*/|//[^\n]*", " ", messy(text, 7).replace("\\\n", ""), flags=re.DOTALL
    )
    assert " ".join(strange.split()) == plain


def test_a_wrong_value_is_a_disagreement():
    kernel = make_kernel(1)
    report = runner.Report()
    values = {"oracle": {(1, 0): "0a", (1, 1): "0b"}, "fast": {(1, 0): "0a", (1, 1): "0c"}}
    runner.Runner.compare(None, [kernel], values, report)
    assert [(d.seed, d.kind) for d in report.disagreements] == [(1, "differs: fast")]
