"""Runs kernels in every way there is and compares what they wrote."""

import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field

from . import builds
from .program import cuda_program, oracle_program

LINE = re.compile(r"^k(\d+) (\d+) (\S.*)$", re.MULTILINE)
#: Ways to run the fast build: the environment of each.
WAYS = {
    "fast": {},
    "threads": {"EMULATOR_LOOPS": "0"},
    "shuffled": {"EMULATOR_LOOPS": "0", "EMULATOR_SHUFFLE": "7"},
}


@dataclass
class Disagreement:
    """A kernel that ends differently in two ways, or is refused, or has a false finding."""

    seed: int
    kind: str
    detail: str


@dataclass
class Report:
    """What a batch showed."""

    kernels: int = 0
    launches: int = 0
    disagreements: list = field(default_factory=list)
    ways: Counter = field(default_factory=Counter)
    reasons: Counter = field(default_factory=Counter)
    productions: Counter = field(default_factory=Counter)
    broken: Counter = field(default_factory=Counter)
    hashes: dict = field(default_factory=dict)

    def add(self, other):
        """Adds the figures of another batch."""
        self.kernels += other.kernels
        self.launches += other.launches
        self.disagreements += other.disagreements
        for name in ("ways", "reasons", "productions", "broken"):
            getattr(self, name).update(getattr(other, name))
        self.hashes.update(other.hashes)


def outputs(program, names, env, call):
    """{(seed, launch): hash} of a program; one that dies goes on behind the kernel it died in."""
    found, left = {}, list(names)
    while left:
        done = call(program, *left, env=env) if len(left) < len(names) else call(program, env=env)
        what = f"crash: status {done.returncode} {done.stderr.strip()[-300:]}"
        for seed, launch, value in LINE.findall(done.stdout):
            found[int(seed), int(launch)] = value
            if value.startswith("error"):  # which stays, so nothing behind it says anything
                what = value
                break
        ended = [name for name in left if (int(name[1:]), 1) not in found]
        if what.startswith("error"):
            ended = [f"k{seed}", *left[left.index(f"k{seed}") + 1 :]]
        if not ended:
            break
        for launch in (0, 1):
            found.setdefault((int(ended[0][1:]), launch), what)
        left = ended[1:]
    return found


def call_plainly(program, *arguments, env=None):
    """Runs a program of the oracle."""
    try:
        return subprocess.run(
            [str(program), *arguments], capture_output=True, text=True, timeout=builds.SECONDS
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(program, 124, "", "it took too long")


def built(compiler, write, kernels, stem, refused):
    """(program, kernels in it): those that do not compile are left out and told to `refused`."""
    kernels = list(kernels)
    while kernels:
        program = write(kernels)
        try:
            return compiler.program_of(program.text, stem), kernels
        except builds.BuildError as error:
            seeds = {program.kernel_at(line) for line in error.lines} - {None}
            if not seeds and len(kernels) > 1:  # whose fault it is shows one by one
                return alone(compiler, write, kernels, stem, refused)
            message = str(error).strip()
            for seed in seeds or {kernels[0].seed}:
                refused(seed, excerpt(message, program, seed))
            kernels = [k for k in kernels if k.seed not in (seeds or {kernels[0].seed})]
    return None, []


def alone(compiler, write, kernels, stem, refused):
    """The same where no message names a line: each kernel is tried on its own first."""
    good = []
    for kernel in kernels:
        program, _ = built(compiler, write, [kernel], stem, refused)
        good += [kernel] if program else []
    return built(compiler, write, good, stem, refused) if good else (None, [])


def excerpt(message, program, seed):
    """The lines of a compiler's message about one kernel."""
    first, last = program.lines[seed]
    for line in message.splitlines():
        for path, number, rest in builds.CHANGED.findall(line):
            if first <= int(number) <= last and "error" in line:
                return rest.strip(": ") or path
    return message[-300:]


class Runner:
    """All ways to run kernels, with their compilers in a folder."""

    def __init__(self, folder, cxx=None, checked=False, oracle=True, explain=True):
        self.compiler = builds.compiler(folder, cxx)
        self.checked = builds.compiler(folder, cxx, checked=True) if checked else None
        self.oracle = builds.Oracle(self.compiler.folder) if oracle else None
        self.explain = explain

    def run(self, kernels, stem):
        """The Report of some kernels."""
        apart = [kernel for kernel in kernels if "kernel head class" in kernel.counts]
        if apart and len(apart) < len(kernels):  # see make_kernel: one may slow down all others
            report = self.run([k for k in kernels if k not in apart], stem)
            report.add(self.run(apart, stem))
            return report
        report = Report(kernels=len(kernels))
        for kernel in kernels:
            report.productions.update(kernel.counts)
        try:
            values = self.all_values(kernels, stem, report)
        finally:
            self.compiler.clean(stem)
            if self.checked:
                self.checked.clean(stem)
        self.compare(kernels, values, report)
        bad = {found.seed for found in report.disagreements}
        for kernel in kernels:
            if kernel.seed in bad:
                report.broken.update(dict.fromkeys(kernel.counts, 1))
        return report

    def all_values(self, kernels, stem, report):
        """{way: {(seed, launch): hash}}, with refusals and false findings put into the report."""

        def refused(kind):
            return lambda seed, text: report.disagreements.append(Disagreement(seed, kind, text))

        values = {}
        if self.oracle:
            program, good = built(
                self.oracle, oracle_program, kernels, stem, refused("oracle refuses")
            )
            values["oracle"] = (
                outputs(program, [k.name for k in good], {}, call_plainly) if program else {}
            )
        program, good = built(self.compiler, cuda_program, kernels, stem, refused("refused"))
        if program:
            names = [k.name for k in good]
            for way, env in WAYS.items():
                values[way] = outputs(program, names, env, self.compiler.call)
            if self.explain:
                self.count_ways(good, stem, report)
        if self.checked:
            program, good = built(
                self.checked, cuda_program, kernels, stem, refused("checked refuses")
            )
            if program:
                values.update(self.checked_values(program, good, stem, report))
        return values

    def count_ways(self, kernels, stem, report):
        """How kernels run, and why not fast."""
        how = self.compiler.explained(stem)
        for kernel in kernels:
            way, reason = how.get(kernel.name, ("not said", ""))
            report.ways[way] += 1
            if way.startswith(("fibers", "thread by thread")):
                report.reasons[re.sub(r"\w*_?\d[\w]*", "*", reason)] += 1

    def checked_values(self, program, kernels, stem, report):
        """Values of the checked build; what it finds in kernels without a fault is false."""
        found, names = {}, [k.name for k in kernels]
        for way, env in (("checked", {}), ("checked, shuffled", {"EMULATOR_SHUFFLE": "7"})):
            file = self.checked.folder / f"{stem}.findings"
            file.write_text("")
            env = {**env, "EMULATOR_FINDINGS": str(file), "DLSYS_CHECKED": "1"}
            found[way] = outputs(program, names, env, self.checked.call)
            script = builds.emulator_kit.EMULATOR / "report.py"
            done = self.checked.call(sys.executable, script, "--json", file)
            for finding in json.loads(done.stdout or "[]"):
                seed = re.search(r"\bk(\d+)\b", finding["kernel"] or finding["text"])
                if not finding["kind"].startswith("advice"):
                    text = f"{way}: {finding['kind']}: {finding['text']}"
                    report.disagreements.append(
                        Disagreement(int(seed[1]) if seed else -1, "false finding", text)
                    )
        return found

    def compare(self, kernels, values, report):
        """Adds a disagreement for each kernel whose values are not all the same."""
        for kernel in kernels:
            for launch in (0, 1):
                seen = {
                    way: of[kernel.seed, launch]
                    for way, of in values.items()
                    if (kernel.seed, launch) in of
                }
                report.launches += 1
                right = next(iter(seen.values()), None)
                wrong = {
                    way: value for way, value in seen.items() if value != right or " " in value
                }
                if right is not None:
                    report.hashes[kernel.seed, launch] = right
                if not wrong:
                    continue
                if any("crash" in value or "error" in value for value in wrong.values()):
                    kind = "dies: " + ", ".join(wrong)
                else:
                    kind = "differs: " + ", ".join(wrong)
                detail = f"launch {launch} of {kernel.launches[launch]}: " + ", ".join(
                    f"{w} {v}" for w, v in seen.items()
                )
                report.disagreements.append(Disagreement(kernel.seed, kind, detail))
                break
