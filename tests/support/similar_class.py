"""Makes a class whose students wrote on their own, and copies of some: by a seed.

python tests/support/similar_class.py --students 300 --copies 12 --seed 1

Prints what grader.similarity.measure finds, how long it took and what memory, beside copydetect
alone. A student's work is put together of hand-written ways to write each task, in habits of the
student's own: how elements are indexed, how loops and guards are written. It need not compile.
"""

from __future__ import annotations

import argparse
import io
import keyword
import random
import re
import resource
import shutil
import sys
import tempfile
import time
import tokenize
from collections import Counter
from pathlib import Path

KIT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(KIT), str(KIT / "tests/support"), str(KIT / "tools")]

import similar_work  # noqa: E402
from grader.course.rubric import load_rubric  # noqa: E402
from grader.similarity.measure import Similarity, compare  # noqa: E402
from grader.similarity.page import to_html  # noqa: E402

FILES = ("python/dlsys/autodiff.py", "src/gpu_op.cu")
_HOLE = re.compile(
    r"^( *)(?:#|//) TODO \(task (\d+\.\d+)\): your (code|kernels|functions) here\n"
    r"(?: *(?:raise NotImplementedError|return not_written)\(.*\n)?",
    re.M,
)


def student(seed: int) -> dict[str, str]:
    """The files of one student who wrote alone."""
    chance = random.Random(seed)
    habit = similar_work.Habit(chance)
    return {name: _fill(name, habit) for name in FILES}


def _fill(name: str, habit: similar_work.Habit) -> str:
    seen = Counter[str]()

    def fill(match: re.Match[str]) -> str:
        indent, task, _ = match.groups()
        code = habit.write(task, seen[task])
        seen[task] += 1
        lines = [indent + line if line else line for line in code.strip("\n").split("\n")]
        return "\n".join(lines) + "\n"

    return _HOLE.sub(fill, (KIT / "assignment" / name).read_text())


def write(files: dict[str, str], folder: Path) -> Path:
    """Lays a submission out."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


# --- copies, made by rules ------------------------------------------------------------------------


def disguised(files: dict[str, str], seed: int) -> dict[str, str]:
    """A copy: other names, other comments and layout, functions in another order, constants
    spelt otherwise. What it does is the same."""
    chance = random.Random(seed)
    python, cuda = (files[name] for name in FILES)
    return {FILES[0]: disguised_python(python, chance), FILES[1]: disguised_cuda(cuda, chance)}


def edited(files: dict[str, str], seed: int) -> dict[str, str]:
    """A copy that is disguised and reworked: small things are written the other way, and every
    eighth statement has another one before it."""
    chance, changed = random.Random(seed), dict(files)
    for name, text in files.items():
        given = set((KIT / "assignment" / name).read_text().splitlines())
        lines = []
        for line in text.splitlines():
            if line not in given:
                for pattern, replacement, _ in similar_work.SWAPS:
                    if chance.random() < 0.5:
                        line = re.sub(pattern, replacement, line)
                plain = re.match(r" {2,}(?=\w+(?:\[\w+\])? = )", line)
                if plain and chance.random() < 0.125:
                    own = "extra = dict()" if name.endswith(".py") else "bool extra = n == 3;"
                    lines.append(plain[0] + own)
            lines.append(line)
        changed[name] = "\n".join(lines) + "\n"
    return disguised(changed, seed)


def disguised_python(text: str, chance: random.Random) -> str:
    return renamed_python(_shuffled_python(text, chance), chance)


def disguised_cuda(text: str, chance: random.Random) -> str:
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    text = _shuffled_cuda(text, chance)
    text = re.sub(r"(?<![\w.])0(?![\w.])", "0x0", text)
    text = re.sub(r"\b256\b", "0x100", text)
    text = re.sub(r"(?<=[;{}])\n", "  // next\n\n", text)
    return renamed_cuda(text, chance)


def renamed_python(text: str, chance: random.Random) -> str:
    """Every name that a function here binds gets another one; comments are dropped."""
    given = set(re.findall(r"\w+", (KIT / "assignment" / FILES[0]).read_text()))
    bound = set(re.findall(r"\b(\w+)(?:, \w+)* (?:=|in) |\bdef (_\w+)|, (\w+) = ", text))
    names = sorted({name for each in bound for name in each if name})
    fresh = {
        name: f"q{chance.randrange(10**6)}"
        for name in names
        if name not in given and not keyword.iskeyword(name)
    }
    out = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            continue
        value = fresh.get(token.string, token.string) if token.type == tokenize.NAME else None
        out.append((token.type, token.string if value is None else value))
    return tokenize.untokenize(out)


def renamed_cuda(text: str, chance: random.Random) -> str:
    """Every identifier that the skeleton, CUDA and C++ do not have gets another one."""
    given = set(re.findall(r"\w+", (KIT / "assignment" / FILES[1]).read_text()))
    known = given | similar_work.CUDA_WORDS
    fresh: dict[str, str] = {}

    def rename(match: re.Match[str]) -> str:
        name = match[0]
        if name in known or name.startswith(("cuda", "cublas", "CUBLAS")):
            return name
        return fresh.setdefault(name, f"q{chance.randrange(10**6)}")

    return re.sub(
        r'"[^"\n]*"|(?<![\w.])[A-Za-z_]\w*|(?<=[A-Za-z_\])]\.)[A-Za-z_]\w*',
        lambda m: m[0] if m[0][0] == '"' else rename(m),
        text,
    )


def _shuffled_python(text: str, chance: random.Random) -> str:
    """The top-level functions among themselves, and the methods of each class."""
    blocks = re.split(r"(?m)^(?=(?:class|def) )", text)
    head, blocks = blocks[0], blocks[1:]
    functions = [i for i, block in enumerate(blocks) if block.startswith("def ")]
    order = functions[:]
    chance.shuffle(order)
    moved = dict(zip(functions, (blocks[i] for i in order), strict=True))
    blocks = [moved.get(i, _shuffled_methods(block, chance)) for i, block in enumerate(blocks)]
    return head + "".join(blocks)


def _shuffled_methods(block: str, chance: random.Random) -> str:
    tail = re.search(r"\n(?=\w)", block[1:])  # code that follows the class
    end = tail.start() + 2 if tail else len(block)
    parts = re.split(r"(?m)^(?=    def )", block[:end])
    methods = [part.rstrip("\n") + "\n\n" for part in parts[1:]]
    chance.shuffle(methods)
    return parts[0] + "".join(methods) + "\n" + block[end:]


def _shuffled_cuda(text: str, chance: random.Random) -> str:
    """All top-level definitions, after the includes."""
    first = text.index("static const int")
    blocks = re.findall(r"\S.*?(?:^}\n|(?<=;)\n(?=[^\s}]|\n))", text[first:], re.S | re.M)
    chance.shuffle(blocks)
    return text[:first] + "\n".join(blocks)


# --- a class --------------------------------------------------------------------------------------


def make_class(folder: Path, students: int, copies: int, seed: int) -> dict[frozenset[str], str]:
    """Submissions in `folder`; returns which two are a pair of original and copy, and what kind:
    all disguised, reworked too, or of one file alone."""
    alone, kinds = students - copies, {}
    for number in range(alone):
        write(student(seed * 100_000 + number), folder / f"s{number:04}")
    for number in range(copies):
        original, once = f"s{number:04}", seed * 100_000 + alone + number
        files = {name: (folder / original / name).read_text() for name in FILES}
        kind = ("disguised", "reworked", "one file")[number % 3]
        copy = edited(files, once) if kind == "reworked" else disguised(files, once)
        if kind == "one file":
            copy[FILES[0]] = student(once)[FILES[0]]
        write(copy, folder / f"copy{number:04}")
        kinds[frozenset((original, f"copy{number:04}"))] = kind
    return kinds


def main() -> None:
    """Makes a class, compares it, and prints figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", type=int, default=300)
    parser.add_argument("--copies", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--page", type=Path, help="write the page there")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        kinds = make_class(folder, options.students, options.copies, options.seed)
        began, cpu = time.monotonic(), time.process_time()
        result = compare([folder], [], load_rubric("default").files)
        if options.page:
            options.page.write_text(to_html(result, 30))
            print(f"the page has {options.page.stat().st_size:,} bytes")
        print(f"{len(result.works)} submissions, {len(result):,} pairs: "
              f"{time.monotonic() - began:.1f} s, {time.process_time() - cpu:.1f} s of CPU, "
              f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")  # fmt: skip
        _figures(result, kinds)
    finally:
        shutil.rmtree(folder)


def _figures(result: Similarity, kinds: dict[frozenset[str], str]) -> None:
    """How the copies stand among the others."""
    pairs = list(result.pairs())
    kind = [kinds.get(frozenset((p.first.label, p.second.label)), "alone") for p in pairs]
    for name, usual in result.usual.items():
        print(f"{name or 'whole'}: median {usual.median:.3f}, spread {usual.spread:.3f}")
        for each in sorted(set(kind)):
            values = sorted((p.files[name] if name else p.whole).value
                            for p, k in zip(pairs, kind, strict=True) if k == each)  # fmt: skip
            print(f"  {each}: {values[0]:.3f} to {values[-1]:.3f}")
    for each in sorted(set(kind) - {"alone"}):
        print(each, "at places", [p.place for p, k in zip(pairs, kind, strict=True) if k == each])


if __name__ == "__main__":
    main()
