"""Small cases of calls between the host and the device, with what nvcc says of each.

python tests/emulator/calls/cases.py [NVCC]     asks nvcc, writes its answers into titles
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
FILES = sorted(FOLDER.glob("*.cu"))
RELAXED = "--expt-relaxed-constexpr"
ACCEPTS, REFUSES, STRICT = "accepts", "refuses", "refuses without " + RELAXED
# Behind nvcc's answer where the emulated GPU, which is not certain, takes the program.
MISSED = ", the emulated GPU accepts"
TITLE = re.compile(rf"^// ---- (.*): nvcc ({STRICT}|{REFUSES}|{ACCEPTS})({MISSED})?$")


class Case:
    """A title, nvcc's answer, whether the emulated GPU takes what nvcc does not, and its lines."""

    def __init__(self, title, answer, missed, first):
        self.title, self.answer, self.is_missed = title, answer, bool(missed)
        self.lines = range(first, first)

    def is_refused(self, relaxed=False):
        """Whether nvcc refuses it, with its option or without."""
        return self.answer == REFUSES or (self.answer == STRICT and not relaxed)


def cases_of(path):
    """The cases of a file."""
    found, lines = [], path.read_text().splitlines()
    for number, line in enumerate(lines, 1):
        title = TITLE.match(line)
        if title:
            found.append(Case(*title.groups(), number))
        elif found:
            found[-1].lines = range(found[-1].lines.start, number + 1)
    return found


def text_of(path, case):
    """A program of the one case."""
    lines = path.read_text().splitlines()
    headers = [line for line in lines if line.startswith("#include")]
    return "\n".join([*headers, *lines[case.lines.start : case.lines.stop - 1], ""])


def asked(nvcc, text):
    """What nvcc says of a program."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "case.cu"
        source.write_text(text)
        for options, answer in (([], ACCEPTS), ([RELAXED], STRICT)):
            words = [nvcc, "-std=c++17", "-arch=sm_90", "--extended-lambda", *options]
            done = subprocess.run([*words, "-c", source, "-o", "/dev/null"], capture_output=True)
            if done.returncode == 0:
                return answer
    return REFUSES


def renew(path, nvcc):
    """Writes nvcc's answers into the titles of a file."""
    text = path.read_text()
    for case in cases_of(path):
        answer = asked(nvcc, text_of(path, case))
        if answer != case.answer:
            print(f"{path.name}: {case.title}: {answer}, no longer {case.answer}")
        title = f"// ---- {case.title}: nvcc "
        old = re.compile(re.escape(title + case.answer) + "(?=,|$)", re.M)
        text = old.sub(title + answer, text, count=1)
    path.write_text(text)


if __name__ == "__main__":
    for source in FILES:
        renew(source, sys.argv[1] if len(sys.argv) > 1 else "nvcc")
