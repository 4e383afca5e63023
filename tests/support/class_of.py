"""Makes the submissions of a class: mistakes, tricks, right and unfinished work, by a seed.

python tests/support/class_of.py FOLDER --students 300 --seed 1

writes submissions/ and class.csv into FOLDER.
"""

from __future__ import annotations

import argparse
import ast
import csv
import io
import random
import sys
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

KIT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(KIT), str(KIT / "tests/support"), str(KIT / "tools")]

import catalogue  # noqa: E402
from simulated import FAMILY, GIVEN  # noqa: E402

#: Kind -> its share of the class.
SHARES = {
    "mistakes": 0.52, "right": 0.16, "half": 0.07, "skeleton": 0.07, "hostile": 0.06,
    "broken": 0.04, "copy": 0.03, "unreadable": 0.02, "missing": 0.03,
}  # fmt: skip
_MOST_MISTAKES = 3

Files = dict[str, str]


def read(root: Path) -> Files:
    """The files with holes of a tree."""
    return {name: (root / name).read_text() for name in catalogue.FILES}


def make_class(folder: Path, students: int, seed: int = 1) -> dict[str, str]:
    """Writes FOLDER/submissions and FOLDER/class.csv; returns the kind of each student's work."""
    chance = random.Random(seed)
    known = [m for m in catalogue.mutants() if m.device != "cuda"]
    honest = [m for m in known if not m.family]
    # What never ends takes its check's whole time; one of these is as good as all.
    hostile = [m for m in known if m.family and m.seconds is None]
    made, kinds, rows = list[Files](), dict[str, str](), list[list[str]]()
    for number in range(students):
        student = f"s{10_000 + number}"
        kind = chance.choices(list(SHARES), list(SHARES.values()))[0]
        if kind == "copy" and not made:
            kind = "right"
        kinds[student] = kind
        given, family = chance.choice(GIVEN), chance.choice(FAMILY)
        rows.append([student, f"{family}, {given}", f"{student}@example.edu", f"{number % 4 + 1}"])
        if kind == "missing":
            continue
        if kind == "unreadable":
            _write_unreadable(folder / "submissions", student, chance)
            continue
        files = _files(kind, student, chance, honest, hostile, made)
        made.append(files)
        _pack(folder / "submissions", student, files, chance)
    _write_roster(folder / "class.csv", rows)
    return kinds


def _files(kind, student, chance, honest, hostile, made) -> Files:
    if kind == "copy":
        return chance.choice(made)
    if kind == "skeleton":
        return read(KIT / "assignment")
    solution = read(KIT / "solution")
    if kind == "half":
        left = chance.choice(catalogue.FILES)
        solution[left] = read(KIT / "assignment")[left]
    if kind == "mistakes":
        for mutant in chance.sample(honest, chance.randint(1, _MOST_MISTAKES)):
            solution = _edited(solution, mutant)
    if kind == "hostile":
        solution = _edited(solution, chance.choice(hostile))
    if kind == "broken":
        solution = _broken(solution, chance)
    # No two students write the same.
    return {
        name: f"{text}\n{'#' if name.endswith('.py') else '//'} by {student}\n"
        for name, text in solution.items()
    }


def _edited(files: Files, mutant: catalogue.Mutant) -> Files:
    """With the mutant's edits; without them where another mutant has taken their place."""
    edited = dict(files)
    for name, find, replace in mutant.edits:
        if edited[name].count(find) != 1:
            return files
        edited[name] = edited[name].replace(find, replace.replace("@KIT@", str(KIT)))
    return edited


def _broken(files: Files, chance: random.Random) -> Files:
    """One of the files does not parse: a line that opens a block is lost, or a bracket."""
    name = chance.choice(catalogue.FILES)
    lines = files[name].split("\n")
    if name.endswith(".cu"):
        lost = chance.choice([n for n, line in enumerate(lines) if line.endswith("{")])
        return {**files, name: "\n".join(lines[:lost] + lines[lost + 1 :])}
    calls = [n for n, line in enumerate(lines) if line.endswith(")")]
    for at in chance.sample(calls, len(calls)):
        text = "\n".join([*lines[:at], lines[at][:-1], *lines[at + 1 :]])
        try:
            ast.parse(text)
        except SyntaxError:
            return {**files, name: text}
    raise AssertionError(f"{name} has no call")


def _pack(folder: Path, student: str, files: Files, chance: random.Random) -> None:
    """As students do: a folder or an archive, with the assignment's folder in it or without."""
    folder.mkdir(parents=True, exist_ok=True)
    top = chance.choice(["", "assignment/", "my work (final)/assignment/"])
    form = chance.choice(["folder", "tar.gz", "zip"])
    if form == "folder":
        for name, text in files.items():
            path = folder / student / top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    elif form == "zip":
        with zipfile.ZipFile(folder / f"{student}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in files.items():
                archive.writestr(zipfile.ZipInfo(top + name), text)
    else:
        with tarfile.open(folder / f"{student}.tar.gz", "w:gz") as archive:
            for name, text in files.items():
                info = tarfile.TarInfo(top + name)
                info.size = len(text.encode())
                archive.addfile(info, io.BytesIO(text.encode()))


def _write_unreadable(folder: Path, student: str, chance: random.Random) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    content = chance.choice([b"", b"PK\3\4 cut short", b"my homework is in the other mail"])
    (folder / f"{student}.zip").write_bytes(content)


def _write_roster(path: Path, rows: list[list[str]]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["student", "name", "email", "section"])
        writer.writerows(rows)


def main() -> None:
    """Writes the class that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--students", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    kinds = make_class(options.folder, options.students, options.seed)
    for kind, count in Counter(kinds.values()).items():
        print(f"{count:4d} {kind}")


if __name__ == "__main__":
    main()
