"""`emucc.py --keep` leaves plain C++ that can be read."""

import os

import pytest

import emucc
import layout

CLANG_FORMAT = layout.clang_format()
SOURCE = """\
__global__ void add(int n, const float* a, const float* b, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
"""


@pytest.fixture
def kept(tmp_path, monkeypatch, capsys):
    """Compiles SOURCE; gives what is left of it, and what is said."""

    def run(program):
        monkeypatch.setattr(layout, "clang_format", lambda: program)
        source = tmp_path / "add.cu"
        source.write_text(SOURCE)
        assert emucc.main(["-c", "--keep", str(source), "-o", str(tmp_path / "add.o")]) == 0
        assert (tmp_path / "add.o").stat().st_size > 0
        return (tmp_path / "add.cu.cc").read_text(), capsys.readouterr().err

    return run


def test_what_is_kept_is_laid_out_and_nothing_else(kept):
    plain, _ = kept(None)
    text, said = kept(CLANG_FORMAT)
    assert said == ""
    assert "".join(text.split()) == "".join(plain.split())
    second = text[text.index("emulator::KernelOf") :]
    assert max(map(len, plain.splitlines())) > 400
    assert max(map(len, second.splitlines())) <= 100


def test_without_clang_format_the_lines_are_long_and_it_is_said_so(kept, tmp_path):
    _, said = kept(None)
    path = os.path.join(tmp_path, "add.cu.cc")
    assert said == f"emucc: {path} has long lines: there is no clang-format; {layout.HINT}\n"


def test_a_clang_format_that_does_not_know_the_settings_is_named(kept, tmp_path):
    old = tmp_path / "clang-format"
    old.write_text("#!/bin/sh\necho 'error: unknown key Macros' >&2\nexit 1\n")
    old.chmod(0o755)
    text, said = kept(str(old))
    assert "emulator::KernelOf" in text
    assert f"has long lines: {old}: error: unknown key Macros; hint: " in said
