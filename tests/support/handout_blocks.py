"""Blocks of code in what people read: taken out of Markdown, and checked as far as is possible.

A block of a chapter says behind its language what it is:

    sh run             run by the test, must succeed
    sh check           not run; each command is read by its own parser, see `check`
    python file=NAME   written to that file before the commands run
    cuda file=NAME     must compile; gpu_op.cu: behind the first lines of that file
    pycon              run by doctest
    python, cuda, text shown only; Python must parse

The READMEs have indented blocks, which are all of the kind `sh check`.
"""

import ast
import importlib
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

from grader.cli import main

KIT = Path(__file__).resolve().parents[2]

#: Commands that can't be run here, by their first words, and why.
ELSEWHERE = {
    "python3 -m venv": "makes an environment; the tests run in one",
    ". .venv/bin/activate": "belongs to the shell that types it",
    "python3 -m pip install": "needs a network; what it installs is looked up in pyproject.toml",
    "apt-get install": "needs a network and rights",
    "nvidia-smi": "needs an NVIDIA GPU",
    "export CUDA_VISIBLE_DEVICES=1": "chooses a GPU of a machine that has some",
    "module load cuda": "needs a cluster",
    "%cd": "belongs to a notebook",
    "gdb --args": "waits for somebody who types",
}
#: Files that the reader writes.
STUDENTS_OWN = ("my_experiment.py", "my_program.cu")
#: Languages of blocks that are shown only.
SHOWN = {"python", "cuda", "text", "toml", "csv", "json"}


@dataclass(frozen=True)
class Block:
    """A block of code.

    Attributes:
        place: file and line, for messages.
        language, mark, text: of the block; an indented one is "sh", "check".
    """

    place: str
    language: str
    mark: str
    text: str

    @property
    def commands(self):
        """Its lines, those that end in a backslash joined, comments left out."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line for line in map(str.strip, lines) if line and not line.startswith("#")]


def environment(**more):
    """The tests' interpreter and its commands come first; nothing is downloaded."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "DLSYS_OFFLINE": "1", "MAKEFLAGS": "-j2", **more}


def blocks(name, markdown):
    """All blocks of a text."""
    found = []
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        place = f"{name}:{(token.map or [0])[0] + 1}"
        if token.type == "fence":
            language, _, mark = token.info.strip().partition(" ")
            found.append(Block(place, language, mark.strip(), token.content))
        elif token.type == "code_block":
            found.append(Block(place, "sh", "check", token.content))
    return found


def problem_of(block):
    """What is wrong with how a block is marked, or ""."""
    if block.language == "sh":
        return "" if block.mark in ("run", "check") else f"`sh {block.mark}`: hint: run or check"
    if block.language in ("python", "cuda") and re.fullmatch(r"file=[\w.]+", block.mark):
        return ""
    if block.language == "pycon" and not block.mark:
        return ""
    if block.language in SHOWN and not block.mark:
        return ""
    return f"`{block.language} {block.mark}` is no kind of block"


def check(command, folder):
    """Raises AssertionError unless the command is one that would be understood in `folder`.

    `grader` and `dask` read their options; make says what it would do; tests, scripts and files
    that are named must be there; what follows `&&`, `|` and `--`, and what `srun` and `bash -c`
    run, is checked in turn. Anything else must stand in ELSEWHERE.
    """
    words = shlex.split(command.lstrip("!"), comments=True)
    for sign in ("&&", "|"):
        if sign in words:
            at = words.index(sign)
            check(shlex.join(words[:at]), folder)
            return check(shlex.join(words[at + 1 :]), folder)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    words = [words[0].removeprefix(".venv/bin/"), *words[1:]] if words else [""]
    words[0] = "python3" if words[0] == "python" else words[0]
    line = " ".join(words)
    if re.match(r"python3 -m pip install\b", line):
        return check_packages(words[4:], folder)
    if any(line.startswith(known) for known in ELSEWHERE):
        return None
    return check_program(words, folder)


def check_program(words, folder):
    """The same for a program and its arguments."""
    program, rest = words[0], words[1:]
    if program == "grader":
        read_by_grader(rest)
    elif program == "dask":
        read_by_dask(*rest)
    elif program == "make":
        rest = [word.replace("DEVICE=cuda", "DEVICE=emulated") for word in rest]
        done = subprocess.run(
            ["make", "-n", *rest], cwd=folder, env=environment(), capture_output=True, text=True
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
    elif program in ("nosetests", "pytest", "python3", "tar"):
        check_files(program, rest, folder)
    elif program == "srun":
        inner = next(i for i, word in enumerate(rest) if not word.startswith("-"))
        check(shlex.join(rest[inner:]), folder)
    elif words[:2] == ["bash", "-c"]:
        check(words[2], folder)
    else:
        raise AssertionError(f"{' '.join(words)}: neither run nor checked; hint: see ELSEWHERE")


def read_by_grader(arguments):
    """The parser ends the program where it understands nothing."""
    try:
        main._parser().parse_args(arguments)
    except SystemExit as end:
        assert end.code == 0, f"grader {' '.join(arguments)}: not understood"


def read_by_dask(command, *arguments):
    """Its options are read as `dask` reads them; nothing is started."""
    module = importlib.import_module(f"distributed.cli.dask_{command}")
    module.main.make_context(command, list(arguments))


def check_files(program, arguments, folder):
    """Files that are named by their path below the folder must be there."""
    if "--" in arguments:
        at = arguments.index("--")
        if arguments[at + 1 :] != ["..."]:
            check(shlex.join(arguments[at + 1 :]), folder)
        arguments = arguments[:at]
    for word in arguments:
        name = word.partition("::")[0]
        if re.fullmatch(r"[\w./-]+\.(py|cu)", name) and name not in STUDENTS_OWN:
            assert (folder / name).is_file(), f"{program}: {name} is not in {folder}"


def check_packages(words, folder):
    """Requirements files must be there, extras and packages declared."""
    declared = (KIT / "pyproject.toml").read_text()
    for word in words:
        if word.endswith(".txt"):
            assert (folder / word).is_file(), word
        elif not word.startswith("-"):
            extra = re.fullmatch(r"(?:dlsys-kit|\.)\[(\w+)\]", word)
            wanted = f"\n{extra[1]} = [" if extra else f'"{word}'
            assert wanted in declared, f"{word} is not declared in pyproject.toml"


def parses(text):
    """Raises SyntaxError if a block of Python does not parse."""
    ast.parse(text)
