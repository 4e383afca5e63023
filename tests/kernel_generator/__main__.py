"""Makes random kernels, runs them in every way, and says where two ways disagree.

Examples, from the folder tests:

    python -m kernel_generator --seeds 0:600                     # ten batches
    python -m kernel_generator --seeds 0:100000 --jobs 2 --folder ../build/generator
    python -m kernel_generator --show 1234                       # the program of a seed
    python -m kernel_generator --shrink 1234 -o found/name.cu    # as small as it fails
    python -m kernel_generator --hashes --folder ../build/generator > hashes.txt

The folder keeps results.jsonl, from which a run that was stopped goes on, and failures.jsonl.
Exit codes: 0 all ways agree, 1 some do not, 2 usage.
"""

import argparse
import sys
from pathlib import Path

from . import campaign
from .kernel import make_kernel
from .program import cuda_program, oracle_program
from .runner import Runner
from .shrinker import Shrinker

FOLDER = Path(__file__).resolve().parent.parent.parent / "build" / "kernel_generator"


def seeds_of(text):
    """(first, last) of FIRST:LAST."""
    first, colon, last = text.partition(":")
    try:
        return (int(first), int(last)) if colon else (int(first), int(first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not FIRST:LAST, as 0:1000") from None


def options_of(arguments):
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m kernel_generator",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--seeds", type=seeds_of, metavar="FIRST:LAST", help="run these; LAST is not one of them"
    )
    parser.add_argument("--jobs", type=int, default=1, help="batches at a time (default 1)")
    parser.add_argument("--batch", type=int, default=60, help="kernels in a program (default 60)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where results and builds go")
    parser.add_argument(
        "--checked-every",
        type=int,
        default=0,
        metavar="N",
        help="each Nth batch by the checked build, too",
    )
    parser.add_argument(
        "--clang-every", type=int, default=0, metavar="N", help="each Nth batch by clang instead"
    )
    parser.add_argument(
        "--productions", action="store_true", help="say how often each production was used"
    )
    parser.add_argument("--show", type=int, metavar="SEED", help="print the CUDA program of a seed")
    parser.add_argument(
        "--show-oracle", type=int, metavar="SEED", help="print the plain C++ program of a seed"
    )
    parser.add_argument(
        "--shrink", type=int, metavar="SEED", help="make a failing kernel small, write it as a case"
    )
    parser.add_argument(
        "--checked", action="store_true", help="with --shrink: by the checked build, too"
    )
    parser.add_argument(
        "--tries", type=int, default=150, help="with --shrink: programs to build at most"
    )
    parser.add_argument(
        "--hashes", action="store_true", help="print 'seed launch hash' of all results, for gpu.py"
    )
    parser.add_argument("-o", dest="output", type=Path, help="with --shrink: the file to write")
    return parser, parser.parse_args(arguments)


def shrink(options):
    """Writes the smallest form of a failing kernel."""
    runner = Runner(options.folder, checked=options.checked, explain=False)
    shrinker = Shrinker(runner, options.shrink, options.tries)
    if shrinker.run() is None:
        print(f"seed {options.shrink} does not fail; hint: --checked, if the checked build does")
        return 0
    name = options.output.stem if options.output else f"seed_{options.shrink}"
    text = shrinker.case(
        name, f"{shrinker.detail.kind}: {shrinker.detail.detail.splitlines()[0]}"[:300]
    )
    if options.output:
        options.output.write_text(text)
    else:
        print(text, end="")
    return 1


def main(arguments=None):
    """Does what the command line says."""
    parser, options = options_of(arguments)
    for seed, write in ((options.show, cuda_program), (options.show_oracle, oracle_program)):
        if seed is not None:
            print(write([make_kernel(seed)]).text, end="")
            return 0
    if options.shrink is not None:
        return shrink(options)
    if options.hashes:
        print("\n".join(campaign.hashes(options.folder)))
        return 0
    if options.seeds is None:
        parser.error("there is nothing to do; hint: --seeds 0:600")
    every = {"checked_every": options.checked_every, "clang_every": options.clang_every}
    total = campaign.run(options.folder, *options.seeds, every, options.jobs, options.batch)
    print(campaign.summary(total, options.productions))
    for found in total.disagreements[:20]:
        print(f"seed {found.seed}: {found.kind}: {found.detail.splitlines()[0][:200]}")
    return 1 if total.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
