"""check_kernels.py: a command runs in the checked build, and what it found is shown."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import check_kernels
from test_check_report import finding


def check(*arguments):
    """Runs check_kernels.py."""
    return subprocess.run(
        [sys.executable, check_kernels.__file__, *arguments], capture_output=True, text=True
    )


def test_a_command_is_run_and_reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "add.cu").write_text("\n" * 9)
    (tmp_path / "entry.json").write_text(json.dumps(finding()))
    script = (
        "import os; e = os.environ; open(e['EMULATOR_FINDINGS'], 'a').write(open('entry.json')"
        ".read() + '\\n'); print(e['DLSYS_CHECKED'], e['EMULATOR_THREAD'], e['EMULATOR_SHUFFLE'])"
    )
    options = ["--json", "out.json", "--thread", "0,0,0,5,0,0", "--seed", "7"]
    done = check(*options, "--", sys.executable, "-c", script)
    assert done.returncode == 1
    assert done.stdout.startswith("1 0,0,0,5,0,0 7\n") and "1 finding: " in done.stdout
    assert json.loads(Path("out.json").read_text())[0]["line"] == 5


def test_a_command_that_fails_is_told():
    done = check("--", sys.executable, "-c", "raise SystemExit(3)")
    assert done.returncode == 1 and "ended with exit status 3" in done.stdout
    assert "Nothing wrong" not in done.stdout
    assert check("--", sys.executable, "-c", "").returncode == 0


def test_a_kernel_that_is_given_gets_no_advice_and_no_pardon(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    entries = [finding("advice: bank conflict"), finding(order=2)]
    (tmp_path / "entries.json").write_text("".join(json.dumps(one) + "\n" for one in entries))
    script = (
        "import os; open(os.environ['EMULATOR_FINDINGS'], 'a').write(open('entries.json').read())"
    )
    done = check("--given", "add", "--", sys.executable, "-c", script)
    assert "Advice" not in done.stdout and "1 finding: " in done.stdout
    assert "Advice" in check("--given", "sub", "--", sys.executable, "-c", script).stdout


def test_the_makefile_names_the_kernels_that_are_given():
    solution = Path(__file__).resolve().parents[2] / "solution"
    kernels = (solution / "src/gpu_op.cu").read_text()
    given = re.sub(r"// BEGIN SOLUTION.*?// END SOLUTION", "", kernels, flags=re.DOTALL)
    makefile = (solution / "Makefile").read_text()
    (names,) = re.findall(r"^GIVEN_KERNELS = (.*)$", makefile, re.MULTILINE)
    assert names.split() == re.findall(r"__global__ void (\w+)\(", given)


@pytest.mark.parametrize(
    "arguments", [[], ["--"], ["--thread", "1,2", "--", "true"], ["--", "no-such-command"]]
)
def test_usage_is_refused(arguments):
    with pytest.raises(SystemExit) as ended:
        check_kernels.main(arguments)
    assert ended.value.code == 2
