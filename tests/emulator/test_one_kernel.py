"""The page that follows one kernel through the passes is what they make of it now."""

import subprocess
import sys

import kit
import one_kernel


def test_the_page_is_fresh():
    assert one_kernel.page() == one_kernel.PAGE.read_text(), "hint: python tools/one_kernel.py"


def test_the_kernel_of_the_page_compiles_and_has_the_fast_form(tmp_path):
    source = tmp_path / "sum.cu"
    source.write_text(f"#include <cuda_runtime.h>\n{one_kernel.KERNEL}")
    command = [sys.executable, kit.EMULATOR / "emucc.py", "--explain", source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout.split()[:5] == ["block_sum", "loops,", "cut", "at", "barriers:"], done.stderr
