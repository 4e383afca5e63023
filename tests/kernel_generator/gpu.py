"""Runs generated kernels on a real GPU and compares with what the emulated one wrote.

    python -m kernel_generator --hashes --folder FOLDER > hashes.txt     # where the emulator ran
    python -m kernel_generator.gpu hashes.txt --jobs 16                  # where the GPU is

It needs nvcc and a GPU, no network. A line of hashes.txt is `seed hash hash digest`: of the two
launches, and of the program's text, so that another random generator is not taken for a bug.
Exit codes: 0 all agree, 1 some do not, 2 usage.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .kernel import make_kernel
from .program import cuda_kernel, cuda_program
from .runner import LINE

HERE = Path(__file__).resolve().parent


def digest(kernel):
    """A word for the kernel's text."""
    return hashlib.sha256(cuda_kernel(kernel).encode()).hexdigest()[:8]


def expected(path):
    """{seed: (hash, hash, digest)} of a file."""
    found = {}
    for line in path.read_text().splitlines():
        seed, *words = line.split()
        found[int(seed)] = tuple(words)
    return found


def build(kernels, folder, stem, nvcc):
    """(program or None, message)."""
    source = folder / f"{stem}.cu"
    source.write_text(cuda_program(kernels).text)
    command = [
        *nvcc,
        "-std=c++17",
        "-fmad=false",
        "-w",
        f"-I{HERE}",
        str(source),
        "-o",
        str(folder / stem),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    return (folder / stem if done.returncode == 0 else None), done.stderr


def values(program, seeds):
    """{(seed, launch): hash} as the GPU has it; behind an error the rest runs in a new process."""
    found, left = {}, list(seeds)
    while left:
        command = [str(program), *[f"k{seed}" for seed in left]]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            text = done.stdout
        except subprocess.TimeoutExpired as error:
            text = (
                (error.stdout or b"").decode()
                if isinstance(error.stdout, bytes)
                else error.stdout or ""
            )
        bad = None
        for seed, launch, value in LINE.findall(text):
            if bad is None:
                found[int(seed), int(launch)] = value
            if value.startswith("error") and bad is None:
                bad = int(seed)
        unseen = [seed for seed in left if (seed, 1) not in found]
        if bad is None and unseen:
            bad = unseen[0]
            found[bad, 0] = found[bad, 1] = "error: the program ended"
        left = left[left.index(bad) + 1 :] if bad is not None else []
    return found


def compare(seeds, wanted, folder, nvcc):
    """[(seed, what is wrong)] of a batch, and how many ran."""
    kernels = [make_kernel(seed) for seed in seeds]
    wrong = [
        (k.seed, "this Python makes another kernel")
        for k in kernels
        if digest(k) != wanted[k.seed][2]
    ]
    stem = f"batch{seeds[0]}"
    program, message = build(kernels, folder, stem, nvcc)
    if program is None:
        if len(seeds) > 1:
            half = len(seeds) // 2
            first, second = (
                compare(part, wanted, folder, nvcc) for part in (seeds[:half], seeds[half:])
            )
            return first[0] + second[0], first[1] + second[1]
        return [(seeds[0], "nvcc refuses: " + message[:300])], 0
    found = values(program, seeds)
    for path in folder.glob(f"{stem}*"):
        if path.stem == stem:
            path.unlink()
    for seed in seeds:
        seen = (found.get((seed, 0)), found.get((seed, 1)))
        if seen != wanted[seed][:2]:
            wrong.append((seed, f"the GPU has {seen}, the emulated one {wanted[seed][:2]}"))
    return wrong, len(seeds)


def main(arguments=None):
    """Runs what the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m kernel_generator.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("hashes", type=Path, help="made by python -m kernel_generator --hashes")
    parser.add_argument(
        "--jobs", type=int, default=8, help="programs to build at a time (default 8)"
    )
    parser.add_argument("--batch", type=int, default=60, help="kernels in a program (default 60)")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no batch after this time")
    parser.add_argument("--arch", default="native", help="what nvcc builds for (default native)")
    parser.add_argument("--level", default="-O1", help="how nvcc optimises (default -O1)")
    parser.add_argument("--folder", type=Path, default=Path("build/kernel_generator_gpu"))
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    wanted = expected(options.hashes)
    seeds, begun = sorted(wanted), time.monotonic()
    nvcc = ["nvcc", f"-arch={options.arch}", options.level, "-Xptxas", options.level]
    batches = [seeds[k : k + options.batch] for k in range(0, len(seeds), options.batch)]
    ran, wrong = 0, []

    def one(batch):
        if time.monotonic() - begun > options.seconds:
            return [], 0
        return compare(batch, wanted, options.folder, nvcc)

    with ThreadPoolExecutor(options.jobs) as pool:
        for bad, count in pool.map(one, batches):
            ran += count
            wrong += bad
            print(f"\r{ran} of {len(seeds)} kernels, {len(wrong)} disagree", end="", flush=True)
    print()
    for seed, text in wrong[:50]:
        print(f"seed {seed}: {text}")
    figures = {
        "kernels": ran,
        "launches": 2 * ran,
        "disagreements": wrong,
        "seconds": round(time.monotonic() - begun, 1),
    }
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
