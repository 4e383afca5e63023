"""Runs a program with the checked build of the emulated GPU, and counts what makes kernels fast.

    python3 emulator/emucc.py --count saxpy.cu -o saxpy
    python3 emulator/count_kernels.py [--json FILE] -- ./saxpy 1024

Accesses of memory by whole warps, the sectors of 32 bytes that they move, turns at the banks of
shared memory, shuffles, barriers, launches: by kernel, and their sum as a cost. What each is worth
stands in src/checked/traffic.h. Nothing is checked meanwhile.

Exit codes: the command's; 2 usage, 3 it counted nothing.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

# What the table shows: its heading, and the numbers that are summed up in it.
COLUMNS = {
    "cost": ["cost"],
    "launches": ["launches"],
    "blocks": ["blocks"],
    "requests": ["requests"],
    "bytes": ["bytes"],
    "sectors read": ["load_sectors"],
    "written": ["store_sectors"],
    "atomic": ["atomic_sectors"],
    "shared turns": ["shared_turns"],
    "of these replays": ["replays"],
    "shuffles": ["shuffles"],
    "barriers": ["barriers"],
}


def read_counts(path):
    """The numbers of each kernel, by its name; of all processes that wrote to the file."""
    kernels = {}
    with open(path) as file:
        for line in file:
            numbers = json.loads(line)
            kernel = kernels.setdefault(numbers.pop("kernel"), dict.fromkeys(numbers, 0))
            for name, number in numbers.items():
                kernel[name] += number
    return kernels


def table(kernels):
    """The lines of a table, the most costly kernel first. What no kernel has, has no column."""
    rows = sorted(kernels.items(), key=lambda row: -row[1]["cost"])
    cells = [["kernel", *COLUMNS]]
    cells += [
        [name, *[f"{sum(numbers[each] for each in summed):,}" for summed in COLUMNS.values()]]
        for name, numbers in rows
    ]
    columns = [column for column in zip(*cells, strict=True) if set(column[1:]) != {"0"}]
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in zip(*columns, strict=True)
    ]


def counted(command):
    """(exit status, numbers by kernel) of a command."""
    with tempfile.NamedTemporaryFile() as file:
        env = dict(os.environ, DLSYS_CHECKED="1", EMULATOR_TRAFFIC=file.name)
        status = subprocess.run(command, env=env).returncode
        return status, read_counts(file.name)


def main(arguments=None):
    """Runs what the command line says."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="count_kernels.py [--json FILE] -- COMMAND...",
    )
    parser.add_argument("--json", metavar="FILE", help="write the numbers there as well")
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, command = parser.parse_args(arguments[:end]), arguments[end + 1 :]
    if not command or shutil.which(command[0]) is None:
        parser.error("there is no command; hint: write -- before it")
    status, kernels = counted(command)
    if not kernels:
        print("no kernel was counted; hint: emucc.py --count, or make checked", file=sys.stderr)
        return status or 3
    print("\n".join(table(kernels)))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(kernels, file, indent=1)
    return status


if __name__ == "__main__":
    sys.exit(main())
