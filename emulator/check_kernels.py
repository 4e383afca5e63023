"""Runs a program with the checked build of the emulated GPU, and says what its kernels did wrong.

    python3 emulator/check_kernels.py [options] -- COMMAND...

Run `make checked` first. Examples:

    python3 emulator/check_kernels.py -- python3 -m pytest -q tests/test_gpu_op.py
    python3 emulator/check_kernels.py --seed 7 -- nosetests tests/test_executor.py
    python3 emulator/check_kernels.py --thread 0,0,0,5,0,0 -- python3 my_experiment.py

Exit codes: 0 nothing found and the command succeeded, 1 otherwise, 2 usage, 3 the findings can't
be read.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import report


def options_of(arguments):
    """(options, command) of a command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="check_kernels.py [options] -- COMMAND...",
    )
    parser.add_argument("--json", metavar="FILE", help="write the findings there as well")
    parser.add_argument("--all", action="store_true", help="show more than %d" % report.SHOWN)
    parser.add_argument(
        "--given", metavar="KERNEL", action="append", default=[],
        help="give no advice about this kernel, which is not the user's",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, metavar="N", help="run the threads in another order")
    parser.add_argument(
        "--thread", metavar="BX,BY,BZ,TX,TY,TZ", help="print what this thread reads and writes"
    )
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, command = parser.parse_args(arguments[:end]), arguments[end + 1 :]
    if not command:
        parser.error("there is no command; hint: write -- before it")
    if options.thread and not re.fullmatch(r"\d+(,\d+){5}", options.thread):
        parser.error("--thread %s is not six numbers, as 0,0,0,5,0,0" % options.thread)
    if shutil.which(command[0]) is None:
        parser.error("%s: there is no such command" % command[0])
    return options, command


def environment(options, findings, ends):
    """The environment of the command."""
    env = dict(os.environ, DLSYS_CHECKED="1", EMULATOR_FINDINGS=findings, EMULATOR_ENDS=ends)
    if options.thread:
        env["EMULATOR_THREAD"] = options.thread
    if options.seed is not None:
        env["EMULATOR_SHUFFLE"] = str(options.seed)
    return env


def run(command, env):
    """Runs the command to its end; returns its exit status, negative for a signal.

    Ctrl-C and its like end the command, whose findings are shown all the same; also if they come
    before it has begun.
    """
    child, early = [], []

    def interrupt(number, frame):
        # A terminal sends its own to the command, too.
        if number in (signal.SIGINT, signal.SIGQUIT) and sys.stdin.isatty():
            return
        child[0].send_signal(number) if child else early.append(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, interrupt)
    child.append(subprocess.Popen(command, env=env))
    for number in early:
        child[0].send_signal(number)
    return child[0].wait()


def signal_text(number):
    """`signal 11 (SIGSEGV)`."""
    try:
        return "signal %d (%s)" % (number, signal.Signals(number).name)
    except ValueError:
        return "signal %d" % number


def stopped(command, status):
    """What stopped the command before its end, or None: a signal, perhaps to a shell's child."""
    if status < 0:
        return "%s was ended by %s" % (command[0], signal_text(-status))
    if 128 < status <= 128 + max(signal.Signals):
        return "%s ended with exit status %d, as after %s" % (
            command[0], status, signal_text(status - 128)
        )  # fmt: skip
    return None


def lost_process(ends):
    """What stopped a process that the command started, or None if all came to their ends.

    Each that loads the checked build says in this file that it began, and that it ended.
    """
    with open(ends, encoding="utf-8", errors="replace") as file:
        lines = [line.rstrip("\n").split(" ", 2) for line in file]
    ended = {number for what, number, _ in lines if what == "ended"}
    for what, number, name in lines:
        if what == "began" and number not in ended:
            return "process %s (%s) was ended by a signal, or by _exit" % (number, name)
    return None


def main(arguments=None):
    """Runs what the command line says."""
    options, command = options_of(sys.argv[1:] if arguments is None else arguments)
    with tempfile.TemporaryDirectory() as folder:
        path, ends = (os.path.join(folder, name) for name in ("findings.jsonl", "ends"))
        for made in (path, ends):
            open(made, "w").close()
        status = run(command, environment(options, path, ends))
        sys.stdout.flush()
        findings, traces = report.load(path)
        findings = [f for f in findings if not (f.is_advice and f.kernel in options.given)]
        print()
        ended = stopped(command, status) or lost_process(ends)
        failed = "%s ended with exit status %d" % (command[0], status) if status > 0 else None
        report.show(findings, traces, options.all, ended, failed)
        if failed and report.exit_code(findings):
            print(failed)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(report.as_json(findings), file, indent=1)
    return report.exit_code(findings) or (1 if status else 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # as of `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
