"""A Dask cluster on this machine, for tests and for the simulated class."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
KIT = SUPPORT.parents[1]


class Cluster:
    """A Dask scheduler and workers, each a process, as `dask scheduler` and `dask worker` are."""

    def __init__(self, folder, **more):
        self.folder, self.processes = folder, []
        self.environment = {**os.environ, "PYTHONPATH": f"{KIT}:{SUPPORT}", **more}
        self.address_file = folder / "scheduler.json"
        self.address_file.unlink(missing_ok=True)  # of a cluster that is gone
        self.start("scheduler", "--port", "0", "--no-dashboard", "--host", "127.0.0.1")

    def start(self, *words):
        command = [sys.executable, "-m", "dask", *words, "--scheduler-file"]
        process = subprocess.Popen(
            [*command, str(self.address_file)], env=self.environment, cwd=self.folder,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def worker(self, *words):
        return self.start("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", *words)

    @property
    def address(self):
        while True:  # it is there before it is written
            with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
                return json.loads(self.address_file.read_text())["address"]
            time.sleep(0.05)

    def stop(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
