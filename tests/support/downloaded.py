"""Classes as Canvas, Moodle, Gradescope and people pack them, for the tests of collecting them."""

import io
import itertools
import tarfile
import zipfile
from pathlib import Path

from grader.classroom.roster import Person
from grader.collection.collect import collect
from grader.submission.reader import load_submission

PY, CU = "python/dlsys/autodiff.py", "src/gpu_op.cu"
HOLES = (PY, CU)
WORK = {PY: b"mine = 1\n", CU: b"// mine\n"}
OTHER = {PY: b"other = 1\n", CU: b"// other\n"}
LOOSE = {"autodiff.py": WORK[PY], "gpu_op.cu": WORK[CU]}
PRISTINE = {PY: b"hole\n", CU: b"// hole\n", "Makefile": b"all:\n"}

BOB = Person("s1", "Smith, Bob", "bob@x.edu", "bsmith", "A", "340934")
ASA = Person("s2", "Åsa van der Berg", "asa@x.edu", "asa", "B", "340935")
MING = Person("s3", "明 李", "ming@x.edu", "ming", "B", "340936")
ROSTER = [BOB, ASA, MING]


def tar(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zipped(files, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def under(folder, files):
    return {f"{folder}/{name}": content for name, content in files.items()}


def lay(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


class Class:
    """What collect gives for some files, in a folder or in a zip of it."""

    def __init__(self, tmp_path):
        self.tmp_path, self.pristine = tmp_path, lay(tmp_path / "pristine", PRISTINE)

    def __call__(self, files, roster=ROSTER, kind="folder"):
        if kind == "folder":
            source = lay(self.tmp_path / "download", files)
        else:
            source = self.tmp_path / f"download.{kind}"
            source.write_bytes(zipped(files) if kind == "zip" else tar(files))
        return self.collect(source, roster)

    def collect(self, source, roster=ROSTER, files=HOLES):
        entries, self.notes = collect(source, roster, self.tmp_path / "into", files)
        self.entries = {entry.student: entry for entry in entries}
        assert len(self.entries) == len(entries) == len({e.folder.casefold() for e in entries})
        return self.entries

    def load(self, student):
        return load_submission(Path(self.entries[student].source), HOLES, self.pristine)

    def noted(self, *words):
        """Whether one of the notes about all has all these words."""
        return any(all(word in note for word in words) for note in self.notes)


NUMBERS = itertools.count(208490000)  # each file on Canvas has one of its own


def canvas(name, user, original, late=False):
    return f"{name}{'_LATE' if late else ''}_{user}_{next(NUMBERS)}_{original}"


def metadata(*submissions):
    """As Ruby writes it."""
    lines = ["---"]
    for number, created, people in submissions:
        lines += [f"submission_{number}:", "  :submitters:"]
        for name, email, sid in people:
            lines += [f"  - :name: {name}", f"    :email: {email}", f"    :sid: {sid}"]
        lines += [f"  :created_at: {created}", "  :score: 12.0", "  :status: processed"]
    return "\n".join(lines).encode() + b"\n"
