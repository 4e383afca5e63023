"""Submissions packed in every way, and a load that says why one is refused."""

import io
import tarfile
import zipfile

import pytest

from grader.submission.reader import SubmissionError, load_submission

PY, CU = "python/dlsys/autodiff.py", "src/gpu_op.cu"
HOLES = (PY, CU)
WORK = {PY: b"mine = 1\n", CU: b"// mine\n"}
PRISTINE = {PY: b"hole\n", CU: b"// hole\n", "Makefile": b"all:\n", "src/dlarray.h": b"int a;\n"}
KINDS = ["zip", "tar", "tar.gz", "tar.bz2", "tar.xz", "folder"]


def loader(tmp_path):
    """What loads a submission, beside an assignment as it was handed out."""
    pristine = folder(tmp_path / "pristine", PRISTINE)
    return lambda source: load_submission(source, HOLES, pristine)


def folder(path, files):
    path.mkdir(parents=True)
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def tar(path, files, mode="w:gz", extra=()):
    with tarfile.open(path, mode) as out:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
        for info in extra:
            out.addfile(info)
    return path


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zipped(path, files, **how):
    with zipfile.ZipFile(path, "w", how.pop("method", zipfile.ZIP_DEFLATED)) as out:
        for name, content in files.items():
            out.writestr(name, content)
    return path


def pack(tmp_path, files, kind="tar.gz"):
    if kind == "folder":
        return folder(tmp_path / "work", files)
    if kind == "zip":
        return zipped(tmp_path / "work.zip", files)
    return tar(tmp_path / f"work.{kind}", files, "w:" + kind[4:])


def refused(load, source):
    """The sentence."""
    with pytest.raises(SubmissionError) as caught:
        load(source)
    assert "\n" not in str(caught.value)
    return str(caught.value)
