"""Tasks run in other processes, here or on a cluster, and each of them ends with a result."""

import multiprocessing
import os
import signal
import time

import pytest

import engine_tasks
from dask_cluster import KIT, SUPPORT, Cluster
from grader.batch import engine


@pytest.fixture
def pool():
    made = engine.local(2)
    yield made
    made.close()


def results(made, function, tasks):
    return {done.task: done.value for done in engine.run(made, function, tasks)}


def test_every_task_has_its_result(pool):
    assert results(pool, engine_tasks.double, range(7)) == {n: 2 * n for n in range(7)}


def test_no_task_is_no_result(pool):
    assert results(pool, engine_tasks.double, []) == {}


def test_an_error_is_the_result_of_its_own_task_alone(pool):
    done = {d.task: d for d in engine.run(pool, engine_tasks.refuse_odd, range(4))}
    assert [done[n].value for n in (0, 2)] == [0, 2]
    assert str(done[3].error) == "3 is odd"


def test_a_process_that_dies_fails_its_own_task_and_no_other(pool):
    done = {d.task: d for d in engine.run(pool, engine_tasks.die_on_three, range(6))}
    assert [n for n in sorted(done) if done[n].error] == [3]
    assert [done[n].value for n in (0, 1, 2, 4, 5)] == [0, 1, 2, 4, 5]


def test_a_task_whose_process_died_by_chance_runs_again(pool, tmp_path):
    places = [str(tmp_path / name) for name in "ab"]
    assert results(pool, engine_tasks.die_once, places) == dict.fromkeys(places, "alive")


def test_a_pool_that_breaks_between_two_results_is_made_anew(pool):
    seen = {}
    for done in engine.run(pool, engine_tasks.where, range(8)):
        if not seen:
            for process in multiprocessing.active_children():
                process.kill()
            time.sleep(0.5)  # it breaks while nobody waits for it
        seen[done.task] = done
    assert sorted(seen) == list(range(8))
    assert all(done.error is None for done in seen.values())


def test_tasks_are_taken_as_there_is_room(pool):
    taken = []

    def tasks():
        for number in range(20):
            taken.append(number)
            yield number

    running = engine.run(pool, engine_tasks.double, tasks())
    next(running)
    assert len(taken) <= 3
    running.close()


def test_each_process_sees_one_gpu_and_the_variables(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
    made = engine.local(2, {"KIT_WORD": "yes"}, gpus=2)
    seen = [d.value for d in engine.run(made, engine_tasks.process_and_variable, range(6))]
    by_process = {}
    for process, gpu, word in seen:
        assert word == "yes"
        by_process.setdefault(process, set()).add(gpu)
    assert all(len(gpus) == 1 for gpus in by_process.values())
    assert set.union(*by_process.values()) == {"GPU-a", "GPU-b"}


def test_nobody_at_an_address_is_an_error_with_a_hint():
    with pytest.raises(engine.EngineError, match=r"no Dask scheduler answers.*hint: start one"):
        engine.cluster("tcp://127.0.0.1:9", seconds=1)


# --- a cluster ----------------------------------------------------------------------------------


@pytest.fixture
def dask_cluster(tmp_path):
    pytest.importorskip("distributed")
    made = Cluster(tmp_path)
    yield made
    made.stop()


def test_a_cluster_runs_the_same_tasks(dask_cluster):
    for _ in range(2):
        dask_cluster.worker()
    made = engine.cluster(dask_cluster.address)
    assert results(made, engine_tasks.double, range(7)) == {n: 2 * n for n in range(7)}
    made.close()


def test_tasks_of_a_worker_that_is_killed_run_elsewhere(dask_cluster):
    workers = [dask_cluster.worker() for _ in range(3)]
    made = engine.cluster(dask_cluster.address)
    seen = {}
    for done in engine.run(made, engine_tasks.where, range(12)):
        assert done.error is None
        if not seen:
            os.kill(done.value, signal.SIGKILL)  # the process that answered first
            killed = done.value
        seen[done.task] = done.value
    made.close()
    assert sorted(seen) == list(range(12))
    assert killed in [worker.pid for worker in workers]


def test_a_task_for_a_gpu_runs_where_there_is_one(dask_cluster):
    dask_cluster.worker()
    with_gpu = dask_cluster.worker("--resources", "GPU=1")
    made = engine.cluster(dask_cluster.address, gpu=True)
    assert set(results(made, engine_tasks.where, range(4)).values()) == {with_gpu.pid}
    made.close()


# --- Slurm, whose commands are stood in for by ones that run a job at once ----------------------

SBATCH = """#!/bin/sh
for script; do :; done
cp "$script" "$0.job"
setsid bash "$0.job" > "$0.log" 2>&1 &
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
for job; do kill -9 -- "-$job" 2>/dev/null; done
exit 0
"""


@pytest.fixture
def slurm_commands(tmp_path, monkeypatch):
    pytest.importorskip("dask_jobqueue")
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{KIT}:{SUPPORT}")
    return folder


def test_jobs_of_slurm_run_the_same_tasks(slurm_commands):
    made = engine.slurm(1, {"walltime": "00:10:00", "interface": "lo"}, gpu=True)
    try:
        assert results(made, engine_tasks.double, range(4)) == {n: 2 * n for n in range(4)}
    finally:
        made.close()
    script = (slurm_commands / "sbatch.job").read_text()
    assert "#SBATCH -t 00:10:00" in script
    assert "--resources GPU=1" in script


def test_a_wrong_option_of_slurm_is_told(slurm_commands):
    with pytest.raises(engine.EngineError, match=r"Slurm: .*hint"):
        engine.slurm(1, {"no_such_option": 1})
