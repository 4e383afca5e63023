"""check_kernels.py: a command runs in the checked build, and what it found is shown."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "solution" / "emulator"))

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
    assert check("--", sys.executable, "-c", "").returncode == 0


@pytest.mark.parametrize(
    "arguments", [[], ["--"], ["--thread", "1,2", "--", "true"], ["--", "no-such-command"]]
)
def test_usage_is_refused(arguments):
    with pytest.raises(SystemExit) as ended:
        check_kernels.main(arguments)
    assert ended.value.code == 2
