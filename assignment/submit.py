#!/usr/bin/env python3
"""Checks your work, and packs what is handed in into one archive.

    python3 submit.py            check, build, run the tests, pack submission.tar.gz
    python3 submit.py --check    the same without packing
    python3 submit.py --anyway   pack although something is wrong

It needs Python alone. The files to hand in, the tasks and their points stand in .release.json.
"""

import argparse
import ast
import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ElementTree
from datetime import datetime, timezone

RELEASE = ".release.json"
MANIFEST = "submission.json"
ARCHIVE = "submission.tar.gz"
SCHEMA = "dlsys-submission/1"
PACKED, SOMETHING_WRONG, USAGE = 0, 1, 2
BUILD_SECONDS, TEST_SECONDS = 600, 900

#: What stands in a hole that nobody has filled in, see `not_written` of src/cuda_check.h.
OPEN_HOLE = re.compile(
    r"""^(?!\s*(?:\#|//)).*(?:NotImplementedError\(["']task\ |not_written\(")(\d+\.\d+)""", re.X
)


class SubmitError(Exception):
    """What keeps the work from being checked at all; the message says what to do."""


def read_release(folder):
    """What the skeleton says of itself: files to hand in, tasks, points, title, release.

    Raises:
        SubmitError: the folder is no skeleton.
    """
    path = os.path.join(folder, RELEASE)
    try:
        with open(path, encoding="utf-8") as file:
            release = json.load(file)
    except (OSError, ValueError) as error:
        raise SubmitError(
            "%s can't be read: %s; hint: run this in the assignment's folder" % (path, error)
        ) from error
    if not isinstance(release, dict) or not isinstance(release.get("files"), list):
        raise SubmitError("%s does not say which files to hand in" % path)
    return release


def read_files(folder, names):
    """({name: content}, [what is wrong]) of the files to hand in."""
    found, wrong = {}, []
    for name in names:
        path = os.path.join(folder, *name.split("/"))
        if not os.path.isfile(path):
            wrong.append("%s does not exist" % name)
            continue
        with open(path, "rb") as file:
            found[name] = file.read()
        if not found[name].strip():
            wrong.append("%s is empty" % name)
        elif name.endswith(".py"):
            wrong += parse(name, found[name])
    return found, wrong


def parse(name, content):
    """What keeps Python from reading a file: a list of one sentence, or of none."""
    try:
        ast.parse(content, name)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = "%s, line %s" % (name, line) if line else name
        return ["%s does not parse: %s" % (where, getattr(error, "msg", error))]
    return []


def open_tasks(files):
    """Ids of the tasks whose holes are still there, in order."""
    found = set()
    for content in files.values():
        for line in content.decode("utf-8", "replace").splitlines():
            match = OPEN_HOLE.match(line)
            if match:
                found.add(match.group(1))
    return sorted(found, key=lambda task: [int(number) for number in task.split(".")])


def build(folder, device):
    """(whether it builds, the device that it was built for, the last lines that were printed)."""
    make = shutil.which("make")
    if make is None:
        return None, "", ["make is not installed"]
    command = [make, "DEVICE=" + device, "PYTHON=" + sys.executable]
    # What an outer make tells inner ones is not meant for this one.
    env = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    code, output = run(command, folder, BUILD_SECONDS, env)
    if code != 0:
        return False, "", output.strip().splitlines()[-12:]
    with open(os.path.join(folder, "build", "config.mk"), encoding="utf-8") as file:
        match = re.search(r"^BACKEND := (\w+)$", file.read(), re.M)
    return True, match.group(1) if match else "", []


def run(command, folder, seconds, env=None):
    """(exit code, or None after `seconds`; what was printed)."""
    try:
        done = subprocess.run(
            command, cwd=folder, env=env, timeout=seconds, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, "it did not end within %d s" % seconds
    return done.returncode, done.stdout.decode("utf-8", "replace")


def run_tests(folder):
    """{"passed", "failed", "skipped", "not_yours", "failing"}: how many tests did, how many of
    those that failed did so by an error of the emulated GPU, and the names of the failed ones; or
    a sentence that says why not."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "tests.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        code, output = run([*command, "--junitxml=" + path, "tests"], folder, TEST_SECONDS)
        if code is None:
            return "the tests did not end within %d s" % TEST_SECONDS
        if not os.path.exists(path):
            return "the tests could not be run: %s" % (output.strip().splitlines() or ["?"])[-1]
        suites = list(ElementTree.parse(path).iter("testsuite"))
    counts = {
        name: sum(int(suite.get(name, 0)) for suite in suites)
        for name in ("tests", "failures", "errors", "skipped")
    }
    failed = counts["failures"] + counts["errors"]
    passed = counts["tests"] - failed - counts["skipped"]
    cases = [case for suite in suites for case in suite.iter("testcase")]
    broken = [case for case in cases if {"failure", "error"} & {child.tag for child in case}]
    said = [failure.get("message", "") for suite in suites for failure in suite.iter("failure")]
    not_yours = sum("NotYourMistake" in message for message in said)
    return {
        "passed": passed, "failed": failed, "skipped": counts["skipped"], "not_yours": not_yours,
        "failing": [case.get("name", "?") for case in broken],
    }  # fmt: skip


def describe(release, task):
    """`2.11 relu (1 point)`, as far as it is known."""
    name = release.get("names", {}).get(task, "")
    points = release.get("points", {}).get(task)
    worth = "" if points is None else "(%g point%s)" % (points, "" if points == 1 else "s")
    return " ".join(filter(None, (task, name, worth)))


def manifest_of(release, files, tests, built, device):
    """What the archive says of itself."""
    return {
        "schema": SCHEMA,
        "title": release.get("title", ""),
        "release": release.get("release", ""),
        "packed": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "files": {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)},
        "missing": [name for name in release["files"] if name not in files],
        "open_tasks": open_tasks(files),
        "tests": tests if isinstance(tests, dict) else None,
        "built": built,
        "device": device,
        "python": platform.python_version(),
        "system": platform.system(),
    }


def pack(path, files, manifest):
    """Writes the archive; one that is there is replaced when the new one is whole."""
    manifest_text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, content in [*sorted(files.items()), (MANIFEST, manifest_text.encode("utf-8"))]:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o644
            archive.addfile(info, io.BytesIO(content))
    with open(path + ".new", "wb") as file:
        file.write(gzip.compress(raw.getvalue(), mtime=0))
    os.replace(path + ".new", path)


class Checked:
    """What was found out about the work in a folder.

    Attributes:
        files: {name: content} of what is handed in.
        wrong: sentences on what keeps it from being graded well.
        tests: as run_tests has it; None if they were not run.
        built: whether it builds; None if that was not tried.
        device: "emulated" or "cuda", that it was built for; "" if it was not.
    """

    def __init__(self, folder, release, arguments, say):
        self.files, self.wrong = read_files(folder, release["files"])
        self.tests, self.built, self.device = None, None, ""
        if arguments.no_build:
            say("not built, not tested")
            return
        say("building ...")
        self.built, self.device, said = build(folder, arguments.device)
        if not self.built:
            self.wrong.append("it does not build:\n    " + "\n    ".join(said))
        elif not arguments.no_tests:
            say("running the tests ...")
            self.tests = run_tests(folder)


def report(release, checked, say):
    """Says what was found."""
    say("%s, release %s" % (release.get("title", "?"), release.get("release", "?")))
    for name in release["files"]:
        size = "%d bytes" % len(checked.files[name]) if name in checked.files else "missing"
        say("  %s: %s" % (name, size))
    tasks = open_tasks(checked.files)
    if tasks:
        say("not written yet:")
    for task in tasks:
        say("  " + describe(release, task))
    if isinstance(checked.tests, dict):
        skipped = ", %d skipped" % checked.tests["skipped"] if checked.tests["skipped"] else ""
        say("tests: %(passed)d passed, %(failed)d failed" % checked.tests + skipped)
        for name in checked.tests["failing"]:
            say("  " + name)
        if checked.tests["not_yours"]:
            say("  %(not_yours)d of these failed by an error of the emulated GPU, which is not "
                "your mistake; `make test` says what to do" % checked.tests)  # fmt: skip
    elif checked.tests:
        say(checked.tests)
    for sentence in checked.wrong:
        say("wrong: " + sentence)


def parse_arguments(words):
    parser = argparse.ArgumentParser(
        prog="submit.py", description="Checks your work, and packs it into one archive."
    )
    parser.add_argument("--check", action="store_true", help="pack nothing")
    parser.add_argument("--anyway", action="store_true", help="pack even if something is wrong")
    parser.add_argument("--output", metavar="FILE", help="default: %s in the folder" % ARCHIVE)
    parser.add_argument("--device", default="auto", choices=["auto", "cuda", "emulated"])
    parser.add_argument("--no-build", action="store_true", help="do not build, and run no tests")
    parser.add_argument("--no-tests", action="store_true", help="build, but run no tests")
    return parser.parse_args(words)


def submit(folder, arguments, say=print):
    """Checks the work in a folder and packs it; returns the exit code.

    Raises:
        SubmitError: the folder is no skeleton, or none of the files is there.
    """
    release = read_release(folder)
    checked = Checked(folder, release, arguments, say)
    report(release, checked, say)
    if not checked.files:
        raise SubmitError("none of the files to hand in exists, so there is nothing to pack")
    if arguments.check:
        return SOMETHING_WRONG if checked.wrong else PACKED
    if checked.wrong and not arguments.anyway:
        say("nothing was packed; hint: fix what is wrong, or `python3 submit.py --anyway`")
        return SOMETHING_WRONG
    path = os.path.abspath(arguments.output or os.path.join(folder, ARCHIVE))
    manifest = manifest_of(release, checked.files, checked.tests, checked.built, checked.device)
    pack(path, checked.files, manifest)
    say("packed %s: hand in this file" % path)
    return PACKED


def main(words=None):
    """The command line; returns the exit code."""
    folder = os.path.dirname(os.path.abspath(__file__))
    try:
        return submit(folder, parse_arguments(words))
    except (SubmitError, OSError) as error:
        print("submit.py: %s" % error, file=sys.stderr)
        return USAGE


if __name__ == "__main__":
    sys.exit(main())
