"""Mutates code at random places, by a seed, and tells which mutants no test notices.

    pip install -c constraints.txt cosmic-ray pytest-cov
    python tools/mutants.py measure          which tests reach each line, and how long they take
    python tools/mutants.py run --seed 1 --count 300
    python tools/mutants.py survivors        what nobody noticed
    python tools/mutants.py again tests/course/test_rubric.py --room course     by new tests
    python tools/mutants.py table            the figures, by room

The mutations are cosmic-ray's; those that it lacks are below. Its own runs serve badly here: they
start all tests of a module for each mutant. This one runs, in forks of one warm process and in a
copy of the tree, the tests that reach the mutated line, the quickest first. (mutmut, which does so
too, leaves out functions with decorators, which all checks are, and its switch does not reach the
cleared environment of a sandboxed child.)
"""

from __future__ import annotations

import argparse
import ast
import functools
import itertools
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KIT = Path(__file__).resolve().parent.parent
SETTINGS = tomllib.loads((KIT / "tools/mutants.toml").read_text())
BUILD = KIT / "build/mutants"
RESULTS = BUILD / "results.jsonl"
#: Seconds of a test that is quick, and of all tests that one mutant may meet, as measured.
QUICK, ENOUGH = SETTINGS["seconds_of_a_test"], SETTINGS["seconds_of_a_mutant"]


class Without(Operator):
    """Replaces statements of one kind, or what they return."""

    def __init__(self, kinds: tuple[str, ...], code: str) -> None:
        self.kinds, self.code = kinds, code

    def mutation_positions(self, node):
        """Where a statement can be left out."""
        first = node.children[0] if node.type == "simple_stmt" else None
        if first is None or first.type not in self.kinds:
            return
        # without `name = value`, the name's first use would fail: it tells nothing
        binds = first.type == "expr_stmt" and first.children[0].type == "name"
        if not (binds and first.children[1].type == "operator"):
            yield first.start_pos, first.end_pos

    def mutate(self, node, index):
        """The node without its statement."""
        first = node.children[0]
        node.children[0] = parso.parse(first.get_first_leaf().prefix + self.code)
        return node

    @classmethod
    def examples(cls):
        """None: cosmic-ray asks for them to test itself."""
        return ()


class Membership(Operator):
    """Makes `not in` of `in`, and `in` of `not in`."""

    def mutation_positions(self, node):
        """Where an `in` or a `not in` stands."""
        if node.type == "comparison":
            yield from ((c.start_pos, c.end_pos) for _, c in self._points(node))

    def mutate(self, node, index):
        """The node with one of them turned round."""
        at, word = self._points(node)[index]
        node.children[at] = parso.parse(" not in" if word.get_code().strip() == "in" else " in")
        return node

    @staticmethod
    def _points(node):
        words = enumerate(node.children)
        return [(i, c) for i, c in words if c.get_code().split() in (["in"], ["not", "in"])]

    @classmethod
    def examples(cls):
        """None, as above."""
        return ()


@functools.cache
def operators() -> dict[str, Operator]:
    """The mutations, by name."""
    theirs = {name: get_operator(f"core/{name}")() for name in SETTINGS["operators"]}
    ours: dict[str, Operator] = {
        "RemoveStatement": Without(("atom_expr", "power", "expr_stmt", "raise_stmt"), "pass"),
        "ReturnNone": Without(("return_stmt",), "return None"),
        "Membership": Membership(),
    }
    return theirs | ours


@dataclass(frozen=True)
class Mutant:
    """One mutation of one file: `occurrence` counts the places of that operator in it."""

    room: str
    path: str
    operator: str
    occurrence: int
    line: int
    column: int


def mutants_of(room: str, path: str) -> Iterator[Mutant]:
    """All mutants of a module, without those in what only says something."""
    source = (KIT / path).read_text()
    skipped = _says_nothing(source)
    seen: Counter[str] = Counter()
    for node in ast_nodes(get_ast(source)):
        for name, operator in operators().items():
            for place, _ in operator.mutation_positions(node):
                if not any(start <= place < end for start, end in skipped):
                    yield Mutant(room, path, name, seen[name], *place)
                seen[name] += 1


def _says_nothing(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where imports, types and choices by the version of Python begin and end."""
    spans = []
    for node in ast.walk(ast.parse(source)):
        whole = isinstance(node, (ast.Import, ast.ImportFrom))
        whole |= isinstance(node, ast.If) and "version_info" in ast.unparse(node.test)
        types = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        for part in [node] if whole else filter(None, types):
            start, end = (part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset)
            spans.append((start, end))
    return spans


def sample(seed: int, count: int, only: str) -> list[Mutant]:
    """Mutants of all rooms, as many of each as its weight says; of each operator in turn, so that
    the few comparisons are not lost among the many numbers."""
    rooms = {name: room for name, room in SETTINGS["rooms"].items() if only in name}
    weights = sum(room["weight"] for room in SETTINGS["rooms"].values())
    chosen: list[Mutant] = []
    for name, room in rooms.items():
        paths = [p for entry in room["modules"] for p in sorted(KIT.glob(entry))]
        every = [m for p in paths for m in mutants_of(name, str(p.relative_to(KIT)))]
        number = round(count * room["weight"] / weights)
        chosen += _in_turn(random.Random(f"{seed} {name}"), every)[:number]
    return chosen


def _in_turn(draw: random.Random, mutants: list[Mutant]) -> list[Mutant]:
    piles: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in draw.sample(mutants, len(mutants)):
        piles[mutant.operator].append(mutant)
    rounds = itertools.zip_longest(*piles.values())
    return [mutant for row in rounds for mutant in row if mutant]


# --- which tests reach a line -------------------------------------------------------------------


def measure() -> None:
    """Runs the quick tests under coverage, a room at a time."""
    BUILD.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"COVERAGE_FILE": str(BUILD / ".coverage")}
    (BUILD / ".coverage").unlink(missing_ok=True)
    for number, tests in enumerate(SETTINGS["tests"]):
        command = [sys.executable, "-m", "pytest", "-q", "--all", "-p", "no:cacheprovider"]
        command += [f"--timeout={10 * QUICK}", "--cov=grader", "--cov=emulator", "--cov-append"]
        command += ["--cov-context=test", "--cov-report=", f"--junitxml={BUILD / f'{number}.xml'}"]
        subprocess.run([*command, *tests.split()], cwd=KIT, env=environment)


class Reach:
    """The tests that reach each line, and how long each takes."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        for report in BUILD.glob("*.xml"):
            for case in xml.parse(report).iter("testcase"):
                if not list(case):  # neither failed nor skipped
                    file = case.get("classname", "").replace(".", "/") + ".py"
                    self.seconds[f"{file}::{case.get('name')}"] = float(case.get("time", 0))
        self._tests: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        data = sqlite3.connect(BUILD / ".coverage")
        for path, context, bits in data.execute(
            "select path, context, numbits from line_bits join file on file.id = file_id "
            "join context on context.id = context_id"
        ):
            for at, byte in enumerate(bits):
                for bit in range(8):
                    if byte >> bit & 1:
                        name = str(Path(path).relative_to(KIT))
                        self._tests[name][at * 8 + bit].add(context.rpartition("|")[0])

    def of(self, mutant: Mutant) -> dict[str, float]:
        """The quickest tests that reach the mutant; a constant's are those of its module."""
        lines = self._tests.get(mutant.path, {})
        wanted = _statement((KIT / mutant.path).read_text(), mutant.line)
        found = {test for line in wanted for test in lines.get(line, ())}
        if "" in found:
            found = {test for tests in lines.values() for test in tests}
        chosen: dict[str, float] = {}
        for test in sorted(found & self.seconds.keys(), key=lambda t: (self.seconds[t], t)):
            if sum(chosen.values()) + self.seconds[test] > ENOUGH or self.seconds[test] > QUICK:
                break
            chosen[test] = self.seconds[test]
        return dict(itertools.islice(chosen.items(), SETTINGS["most_tests"]))


def _statement(source: str, line: int) -> range:
    """The lines of the innermost statement at a line; of a compound one, those of its head."""
    found = range(line, line + 1)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno
            found = range(node.lineno, max(end or 0, line) + 1)
    return found


# --- running ------------------------------------------------------------------------------------


def copy_of_tree(folder: Path) -> None:
    """What git knows, and what was built; modules compiled such that a mutant is compiled anew."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.check_output(listed, cwd=KIT, text=True).split("\0"):
        if name and (KIT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(KIT / name, folder / name)
    if (KIT / "solution/build").is_dir():
        shutil.copytree(KIT / "solution/build", folder / "solution/build", dirs_exist_ok=True)
    compiled = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash"]
    subprocess.run([sys.executable, *compiled, "grader", "emulator"], cwd=folder)


def noticed(tree: Path, tests: list[str], limit: float) -> str:
    """ "killed", "survived" or "timeout": how the tests end in a fork of this process."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        silent = os.open(os.devnull, os.O_RDWR)
        for descriptor in (1, 2):
            os.dup2(silent, descriptor)
        import pytest

        os._exit(
            int(pytest.main(["-x", "-q", "--all", "-p", "no:cacheprovider", "--tb=no", *tests]))
        )
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return "survived" if status == 0 else "killed"
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "timeout"


def run(mutants: list[Mutant], tests_of: Callable[[Mutant], dict[str, float]]) -> None:
    """Tries each by the tests of `tests_of`, with their seconds, and writes a line for it."""
    with tempfile.TemporaryDirectory() as name, RESULTS.open("a") as out:
        tree = Path(name)
        copy_of_tree(tree)
        os.chdir(tree)
        os.environ |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": name}
        sys.path.insert(0, name)
        for module in SETTINGS["preload"]:
            __import__(module)
        for mutant in mutants:
            source = (KIT / mutant.path).read_text()
            try:
                changed = mutate_code(source, operators()[mutant.operator], mutant.occurrence)
            except AttributeError:  # ExceptionReplacer knows no dotted names in a tuple
                changed = None
            if changed is None:  # or what it changed is no longer there
                continue
            tests = tests_of(mutant)
            outcome = "unreached"
            if tests:
                (tree / mutant.path).write_text(changed)
                outcome = noticed(tree, list(tests), 30 + 6 * sum(tests.values()))
                (tree / mutant.path).write_text(source)
            record = {"mutant": asdict(mutant), "outcome": outcome, "tests": len(tests)}
            record |= {"was": _line(source, mutant.line), "now": _first_change(source, changed)}
            out.write(json.dumps(record) + "\n")
            out.flush()
            print(f"{outcome:9} {len(tests):3} {mutant.path}:{mutant.line} {mutant.operator}")
            sys.stdout.flush()


def again(room: str, files: list[str]) -> None:
    """Tries once more, by the tests of some files, what none has failed for."""
    left = [Mutant(**r["mutant"]) for r in results() if r["outcome"] != "killed"]
    run([m for m in left if room in m.path], lambda mutant: dict.fromkeys(files, 20.0))


def _line(source: str, number: int) -> str:
    return source.splitlines()[number - 1].strip()


def _first_change(before: str, after: str) -> str:
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    return next((now.strip() for was, now in pairs if was != now), "")


def results() -> list[dict]:
    """The last word on each mutant that was tried."""
    lines = map(json.loads, RESULTS.open()) if RESULTS.exists() else ()
    return list({json.dumps(record["mutant"]): record for record in lines}.values())


def table() -> None:
    """The figures by room. A timeout may be a loop without end, or a busy machine: look at it."""
    kinds = ("killed", "timeout", "survived", "unreached")
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for record in results():
        for room in (record["mutant"]["room"], "all"):
            counts[room][record["outcome"]] += 1
    print(f"| room | tried | {' | '.join(kinds)} |\n|---|--:|--:|--:|--:|--:|")
    for room, count in sorted(counts.items(), key=lambda item: (item[0] == "all", item)):
        print("|", " | ".join([room, str(count.total()), *(str(count[k]) for k in kinds)]), "|")


def survivors() -> None:
    """Each mutant for which no test failed: the line before and after."""
    for record in results():
        if record["outcome"] != "killed":
            mutant = record["mutant"]
            print(f"{mutant['path']}:{mutant['line']} {mutant['operator']}, {record['outcome']}")
            print(f"    - {record['was']}\n    + {record['now']}")


def main() -> None:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["measure", "run", "again", "table", "survivors"])
    parser.add_argument("files", nargs="*", help="of tests, for `again`")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--room", default="", help="only rooms whose names contain this")
    args = parser.parse_args()
    if args.what == "run":
        reach, tried = Reach(), [record["mutant"] for record in results()]
        chosen = sample(args.seed, args.count, args.room)
        run([mutant for mutant in chosen if asdict(mutant) not in tried], reach.of)
    elif args.what == "again":
        again(args.room, args.files)
    else:
        {"measure": measure, "table": table, "survivors": survivors}[args.what]()


if __name__ == "__main__":
    main()
