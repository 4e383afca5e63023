"""Training: killed at any moment it goes on to the same bits; what it writes; its command."""

import dataclasses
import errno
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from dlsys import ndarray, nn
from dlsys._base import DeviceError
from dlsys.backend.kernels import CompileError
from dlsys.datasets import images
from dlsys.step import files
from dlsys.step.step import Step
from dlsys.train import DivergedError, Settings, SettingsError, Solver
from dlsys.train import __main__ as command
from dlsys.train.lock import Lock
from dlsys.train.log import Log

KIT = Path(__file__).resolve().parents[2]
#: Processes that are killed; 20 have place in a run.
KILLS = int(os.environ.get("KILLED_RUNS", "3"))
CPU, GPU = ndarray.cpu(0), ndarray.gpu(0)
#: A training of four steps.
QUICK = ["mlp", "--data", "synthetic", "--epochs", "1", "--batch", "400", "--device", "cpu"]
SETTINGS = Settings(model="mlp", data="synthetic", epochs=3, batch=16, rate=0.02, seed=5)


def few():
    return images.synthetic(200, size=8)


def results(folder):
    """(lines of the log without times, the bytes of the weights)."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    for line in lines:
        line.pop("seconds", None)
    return lines, (folder / "weights.safetensors").read_bytes()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The results of a run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("undisturbed")
    Solver(SETTINGS, few(), folder, CPU, save_every=3).run()
    return results(folder)


class Killed(BaseException):
    """What stands for a kill: nothing catches it, nothing is tidied up after it."""


def killer(monkeypatch, moments):
    """A kill at one of the moments of a run, counted: before a step, in the middle of a line of the
    log, before or after a file is moved to its place."""
    left = [moments]

    def moment():
        left[0] -= 1
        if left[0] < 0:
            raise Killed

    real_add, real_replace, real_run = Log.add, os.replace, Step._run

    def add(log, **line):
        if left[0] == 0:
            log._file.write(json.dumps(line)[:-9])
            log._file.flush()
        moment()
        real_add(log, **line)

    def replace(source, target):
        moment()
        real_replace(source, target)
        moment()

    def run(step, arrays):
        moment()
        return real_run(step, arrays)

    monkeypatch.setattr(Log, "add", add)
    monkeypatch.setattr(files.os, "replace", replace)
    monkeypatch.setattr(Step, "_run", run)


def test_killed_at_random_moments_it_goes_on_to_the_same_bits(tmp_path, undisturbed):
    chosen, kills = random.Random(11), 0
    while not (tmp_path / "weights.safetensors").exists():
        with pytest.MonkeyPatch.context() as patch:
            killer(patch, chosen.randrange(24) if kills < 20 else 10**6)
            try:
                Solver(SETTINGS, few(), tmp_path, CPU, save_every=3).run()
            except Killed:
                kills += 1
    assert kills == 20
    lines, weights = results(tmp_path)
    assert lines == undisturbed[0]
    assert weights == undisturbed[1]


def test_processes_that_are_killed_leave_what_the_next_goes_on_with(tmp_path):
    def command(folder):
        return [
            sys.executable, "-m", "dlsys.train", "mlp", "--data", "synthetic", "--epochs", "4",
            "--batch", "64", "--save-every", "3", "--device", "cpu", "--resume",
            "--output", str(folder),
        ]  # fmt: skip

    said = {"cwd": tmp_path, "stdout": subprocess.DEVNULL}
    said["env"] = {**os.environ, "PYTHONPATH": str(KIT / "solution/python")}
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    subprocess.run(command(whole), check=True, **said)
    chosen = random.Random(3)
    for _ in range(KILLS):
        process = subprocess.Popen(command(cut), **said)
        checkpoint = cut / "checkpoint.safetensors"
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        while process.poll() is None and not (
            checkpoint.exists() and checkpoint.stat().st_mtime_ns > before
        ):
            time.sleep(0.001)
        time.sleep(chosen.uniform(0, 0.02))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    subprocess.run(command(cut), check=True, **said)
    assert results(cut) == results(whole)


@pytest.mark.parametrize("ctx", [None, GPU], ids=["numpy", "gpu"])
def test_other_devices_go_on_to_the_same_bits_too(tmp_path, ctx):
    """A net with norms and dropout, whose running figures and draws are in the checkpoint."""
    settings = Settings(model="small", data="synthetic", epochs=2, batch=40, warm_up=3)

    def small(shape, classes):
        return nn.Sequential(
            nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.2),
            nn.Flatten(), nn.Linear(36, classes),
        )  # fmt: skip

    def interrupt(solver):
        if solver.steps == 5:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dlsys.models.BY_NAME", {"small": small})
        Solver(settings, few(), tmp_path / "whole", ctx, save_every=3).run()
        with pytest.raises(Killed):
            Solver(settings, few(), tmp_path / "cut", ctx, save_every=3).run(interrupt)
        resumed = Solver(settings, few(), tmp_path / "cut", ctx, save_every=3)
        assert resumed.steps == 4  # the end of the first epoch
        resumed.run()
    assert results(tmp_path / "cut") == results(tmp_path / "whole")


def test_a_run_that_is_told_to_stop_writes_a_checkpoint_of_its_last_step(tmp_path, undisturbed):
    solver = Solver(SETTINGS, few(), tmp_path, CPU)
    assert solver.run(lambda each: each.stop() if each.steps == 14 else None) is None
    again = Solver(SETTINGS, few(), tmp_path, CPU)
    assert again.steps == 14
    again.run()
    assert results(tmp_path) == undisturbed


def test_it_learns_and_says_so_step_by_step_and_epoch_by_epoch(tmp_path):
    settings = Settings(model="mlp", data="synthetic", epochs=3, batch=16, augment=False)
    Solver(settings, few(), tmp_path, CPU).run()
    lines, _ = results(tmp_path)
    steps, epochs = ([x for x in lines if ("epoch" in x) == kind] for kind in (False, True))
    assert [line["step"] for line in steps] == list(range(1, 31))
    assert [(line["epoch"], line["step"]) for line in epochs] == [(0, 10), (1, 20), (2, 30)]
    assert steps[-1]["loss"] < steps[0]["loss"] / 4
    assert epochs[-1]["training_accuracy"] > 0.8
    mean = np.mean([line["loss"] for line in steps[10:20]])
    np.testing.assert_allclose(epochs[1]["loss"], mean, rtol=1e-12)


def test_the_accuracy_is_that_of_the_step_s_parameters(tmp_path):
    solver = Solver(SETTINGS, few(), tmp_path, CPU)
    solver.run()
    data = few()
    mean, deviation = (each.reshape(1, 3, 1, 1) for each in data.statistics())
    first, first_bias, last, last_bias = solver.net.state_dict(solver.step).values()
    *before, end = solver.log.epochs()
    for kind, x, y in (
        ("validation", data.valid_x, data.valid_y), ("test", data.test_x, data.test_y),
    ):  # fmt: skip
        x = ((x / 255 - mean) / deviation).reshape(len(x), -1)
        logits = np.maximum(x @ first.T + first_bias, 0) @ last.T + last_bias
        assert end[kind + "_accuracy"] == (logits.argmax(1) == y).mean()
    assert not any("test_accuracy" in line for line in before)
    assert "of the test images are right" in (tmp_path / "page.html").read_text()


def test_the_page_has_curves_and_needs_nothing_else(tmp_path):
    Solver(SETTINGS, few(), tmp_path, CPU).run()
    page = (tmp_path / "page.html").read_text()
    for part in page.split("<svg")[1:]:
        picture = ElementTree.fromstring("<svg" + part.partition("</svg>")[0] + "</svg>")
        curves = [e for e in picture.iter() if e.tag.endswith("polyline")]
        assert all(len(each.get("points").split()) in (3, 30) for each in curves)
    assert page.count("<polyline") + page.count(":polyline") == 3
    assert "<td>momentum</td><td>0.9</td>" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("ctx", [None, CPU, GPU], ids=["numpy", "cpu", "gpu"])
def test_statistics_are_those_of_the_layers_of_a_batch(tmp_path, ctx):
    """One of the hidden units is made dead, by its bias."""
    solver = Solver(SETTINGS, few(), tmp_path, ctx, statistics=True)
    first, bias, *_ = state = solver.net.state_dict(solver.step)
    state[bias][3] = -100
    solver.step.set(bias, state[bias])
    found = solver.statistics(1)
    x, _ = next(solver._plain.epoch(1))
    weight = state[first].astype(np.float64)
    hidden = x.reshape(len(x), -1).astype(np.float64) @ weight.T + state[bias]
    is_dead = hidden.max(0) <= 0
    assert list(found) == ["layers.0", "layers.1"] and is_dead[3]
    wanted = [hidden.mean(), hidden.std(), is_dead.mean()]
    np.testing.assert_allclose(found["layers.0"], wanted, rtol=1e-5)


def test_statistics_of_each_epoch_are_in_the_log_and_on_the_page(tmp_path):
    Solver(SETTINGS, few(), tmp_path / "with", CPU, statistics=True).run()
    Solver(SETTINGS, few(), tmp_path / "without", CPU).run()
    lines, weights = results(tmp_path / "with")
    told = [line.pop("layers") for line in lines if "epoch" in line]
    assert [set(each) == set(told[0]) for each in told] == [True] * 3
    assert (lines, weights) == results(tmp_path / "without")
    pages = [(tmp_path / name / "page.html").read_text() for name in ("with", "without")]
    assert ["<h2>Layers</h2>" in page for page in pages] == [True, False]
    assert all(f"<td>{name}</td>" in pages[0] for name in told[0])


@pytest.mark.parametrize("ctx", [CPU, GPU], ids=["cpu", "gpu"])
def test_an_epoch_asks_for_no_memory_behind_its_first_steps(tmp_path, ctx):
    solver = Solver(SETTINGS, few(), tmp_path, ctx, threads=2)
    solver.run()
    lines = solver.log.epochs()
    assert [line["allocations"] for line in lines] == [0, 0, 0]
    kept = sum(array.size for array in solver.net.state_dict().values())
    assert lines[0]["memory"]["parameters"] >= 2 * 4 * kept  # with the momentum
    assert lines[0]["memory"]["values"] > 0
    before = ndarray.allocations()
    ndarray.empty((3,), ctx)
    assert ndarray.allocations() == before + 1


def test_what_a_command_can_not_do_is_said_before_the_folder_has_a_run(tmp_path, capsys):
    wrong = {
        "--save-every=0": "a checkpoint every 0 steps; hint: 1 or more",
        "--save-every=-3": "a checkpoint every -3 steps",
        "--threads=-1": "-1 threads; hint: 0 or more",
        "--batch=5000": "batches of 5000 of 1600 training images; hint: a smaller --batch",
        "--rate=nan": "rate is nan; hint: 0 or more",
    }
    for option, words in wrong.items():
        assert command.main([*QUICK, option, "--output", str(tmp_path)]) == 2
        assert capsys.readouterr().err.startswith(words)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SettingsError, match="there is no net 'resnet'; hint: mlp, simple"):
        Solver(Settings(model="resnet", data="synthetic"), few(), tmp_path)
    assert command.main([*QUICK, "--threads=0", "--output", str(tmp_path)]) == 0


def test_a_training_that_could_write_no_checkpoint_does_not_begin(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="package safetensors; hint: python3 -m pip install"):
        Solver(SETTINGS, few(), tmp_path, CPU)


def test_settings_of_a_training_that_never_began_are_forgotten(tmp_path):
    (tmp_path / "settings.json").write_text("{}")
    Solver(SETTINGS, few(), tmp_path, CPU)
    SETTINGS.compare(tmp_path / "settings.json")


def test_one_training_at_a_time_has_a_folder(tmp_path):
    first = Solver(SETTINGS, few(), tmp_path, CPU)
    with pytest.raises(SettingsError, match=r"has .*'s lock; hint: its run\(\) or close\(\)"):
        Solver(SETTINGS, few(), tmp_path, CPU)
    first.run()
    second = Solver(SETTINGS, few(), tmp_path, CPU)
    second.close()
    Solver(SETTINGS, few(), tmp_path, CPU)  # not kept
    Solver(SETTINGS, few(), tmp_path, CPU).run()


def test_the_lock_of_a_process_that_was_killed_holds_nobody(tmp_path):
    hold = "from pathlib import Path; from dlsys.train.lock import Lock; import sys, time\n"
    hold += "lock = Lock(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    env = {**os.environ, "PYTHONPATH": str(KIT / "solution/python")}
    told = {"env": env, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", hold, tmp_path], **told) as process:
        assert process.stdout.readline() == "held\n"
        try:
            with pytest.raises(SettingsError, match=f"process {process.pid} trains"):
                Lock(tmp_path)
        finally:
            process.kill()
    Lock(tmp_path).release()


def full(monkeypatch, writes):
    """A disk that has room for so many files."""
    left, real = [writes], os.fsync

    def fsync(file):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file)

    monkeypatch.setattr(files.os, "fsync", fsync)


def test_a_full_disk_is_an_error_and_the_last_checkpoint_loads(tmp_path, capsys, monkeypatch):
    asked = [*QUICK, "--save-every", "1"]
    assert command.main([*asked, "--output", str(tmp_path / "whole")]) == 0
    asked += ["--output", str(tmp_path / "cut"), "--resume"]
    with monkeypatch.context() as patch:
        full(patch, 7)  # settings, the log, twice log and checkpoint, the log again
        assert command.main(asked) == 3
    said = "No space left on device; hint: --resume goes on from the last checkpoint"
    assert said in capsys.readouterr().err
    assert not list((tmp_path / "cut").glob("*.part"))
    assert command.main(asked) == 0
    assert "cut: after step 2 of 4\n" in capsys.readouterr().out
    assert results(tmp_path / "cut") == results(tmp_path / "whole")


def test_a_folder_that_can_not_be_made_is_named(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert command.main([*QUICK, "--output", str(tmp_path / "file")]) == 3
    assert "file: File exists; hint: another --output" in capsys.readouterr().err


def test_what_a_killed_process_had_half_written_is_removed(tmp_path):
    (tmp_path / "checkpoint.safetensors.77.part").touch()
    Solver(SETTINGS, few(), tmp_path, CPU)
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("what", ["log.jsonl", "checkpoint.safetensors"])
def test_a_run_is_not_taken_for_none_when_one_of_its_files_is_lost(tmp_path, capsys, what):
    asked = [*QUICK, "--output", str(tmp_path)]
    assert command.main(asked) == 0
    (tmp_path / what).unlink()
    assert command.main(asked) == 2
    assert command.main([*asked, "--resume"]) == 0
    assert (tmp_path / "log.jsonl").exists() and (tmp_path / "checkpoint.safetensors").exists()


def test_a_log_that_was_cut_or_overwritten_costs_lines_and_nothing_else(tmp_path, undisturbed):
    whole = "".join(json.dumps(line) + "\n" for line in undisturbed[0])
    for kept in (whole[:900], whole[:-1], "5\n" + whole, "{}\n" + whole, "\0\n", ""):
        solver = Solver(SETTINGS, few(), tmp_path / "run", CPU)
        solver.run(lambda each: each.stop() if each.steps == 14 else None)
        (tmp_path / "run/log.jsonl").write_text(kept)
        Solver(SETTINGS, few(), tmp_path / "run", CPU).run()
        lines, weights = results(tmp_path / "run")
        assert weights == undisturbed[1]
        assert lines[-1]["step"] == 30
        # The loss of an epoch is the mean of those steps that the log has.
        known = [{**line, "loss": 0} if "epoch" in line else line for line in undisturbed[0]]
        assert all(({**line, "loss": 0} if "epoch" in line else line) in known for line in lines)
        shutil.rmtree(tmp_path / "run")


def test_the_page_of_a_run_that_was_killed_before_it_wrote_it_is_written(tmp_path):
    Solver(SETTINGS, few(), tmp_path, CPU).run()
    (tmp_path / "page.html").unlink()
    Solver(SETTINGS, few(), tmp_path, CPU).run()
    assert "<h2>Epochs</h2>" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("ctx", [None, CPU], ids=["numpy", "cpu"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_loss_that_is_no_number_ends_the_training_and_says_so(tmp_path, ctx):
    wild = dataclasses.replace(SETTINGS, rate=1e300, schedule="constant")
    with pytest.raises(DivergedError, match=r"step \d: the loss is (nan|inf); hint: a smaller"):
        Solver(wild, few(), tmp_path, ctx).run()
    for line in (tmp_path / "log.jsonl").read_text().splitlines():
        assert math.isfinite(json.loads(line)["loss"])


def test_the_command_says_how_a_training_failed(tmp_path, capsys, monkeypatch):
    wrong = {
        MemoryError("9 PiB"): (3, "out of memory: 9 PiB; hint: a smaller --batch"),
        DeviceError("no library; hint: run make"): (3, "no library; hint: run make"),
        NotImplementedError("task 4.8 is not written yet"): (2, "task 4.8 is not written yet"),
        DeviceError("out of CPU memory"): (3, "out of CPU memory; hint: a smaller --batch"),
        KeyboardInterrupt(): (130, "interrupted; hint: --resume goes on"),
        DivergedError("step 3"): (1, "step 3"),
    }
    for error, (code, words) in wrong.items():
        with monkeypatch.context() as patch:
            patch.setattr("dlsys.train.solver.progress.bar", lambda *said, e=error: throw(e))
            assert command.main([*QUICK, "--resume", "--output", str(tmp_path)]) == code
        assert words in capsys.readouterr().err


def throw(error):
    raise error


def test_a_compiler_that_an_interrupt_ended_is_no_failure(tmp_path, capsys):
    def run(error):
        if not error.args:
            os.kill(os.getpid(), signal.SIGINT)
        raise error

    asked = [*QUICK, "--output", str(tmp_path), "--resume"]
    for error, code in ((CompileError("no compiler"), 3), (CompileError(), 130)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("dlsys.train.solver.Solver._epoch", lambda *said, e=error: run(e))
            assert command.main(asked) == code
    assert capsys.readouterr().err.startswith("no compiler\ninterrupted; hint: --resume")


def test_a_second_interrupt_ends_a_training_at_once(tmp_path, capsys):
    def run(solver):
        os.kill(os.getpid(), signal.SIGINT)
        assert solver.is_stopping
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("still there")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job behind has it ignored
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Solver, "run", run)
            assert command.main([*QUICK, "--output", str(tmp_path)]) == 130
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_command_trains_refuses_a_second_run_and_goes_on(tmp_path, capsys):
    asked = [*QUICK, "--output", str(tmp_path / "run")]
    assert command.main(asked) == 0
    said = capsys.readouterr()
    assert "epoch 1: loss" in said.out and "page.html" in said.out
    assert command.main([*asked, "--summary"]) == 0
    assert "layers.0 Linear" in capsys.readouterr().out
    assert command.main(asked) == 2
    assert "has a run; hint: --resume, or another --output" in capsys.readouterr().err
    assert command.main([*asked, "--resume"]) == 0
    assert command.main([*asked, "--resume", "--seed", "1"]) == 2
    assert "seed is 1, was 0" in capsys.readouterr().err
    assert command.main(["mlp", "--path", str(tmp_path), "--output", str(tmp_path / "x")]) == 2
    assert "lacks data_batch_1.bin" in capsys.readouterr().err
