"""Accuracies and curves of training runs. Writes docs/training.md and its pictures.

    python3 tools/training_page.py                               # the page of docs/training.json
    python3 tools/training_page.py runs/resnet20-cifar10 --where "H200"    # adds a run, or replaces
    python3 tools/training_page.py runs/resnet20-cifar10 --where "H200" --beside torch.log

A run is the folder that `python -m dlsys.train` has written; what it is compared with, what
tools/train_in_pytorch.py prints of the same settings.
"""

import argparse
import json
import re
import sys
from pathlib import Path

KIT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(KIT / "solution/python"))

from dlsys.train.page import curve

KEPT, PAGE = KIT / "docs/training.json", KIT / "docs/training.md"
FOLDER = KIT / "docs/training"
KINDS = ("training", "validation")

_HEAD = """# Training networks on CIFAR-10

<!-- made by `python tools/training_page.py` -->

A laptop without a GPU trains all but the largest nets overnight, a GPU in minutes. From
`solution/python`, after `make`:

```sh
python3 -m dlsys.train mlp --data synthetic --epochs 2      # needs no download, some seconds
python3 -m dlsys.train resnet14 --data cifar10              # all cores; a GPU if there is one
python3 -m dlsys.train resnet14 --data cifar10 --resume     # goes on where it was stopped
python3 -m dlsys.train resnet18 --data cifar10 --summary    # layers, and no training
python3 -m dlsys.train resnet20 --data cifar10 --batch 128 --epochs 100 --rate 0.1 --statistics
python3 -m dlsys.train resnet18 --data cifar10 --batch 128 --rate 0.1 --bf16 --tf32    # on a GPU
```

The images are looked for in `--path`, in `DLSYS_DATA` and in the cache, else downloaded. A run has
a folder, `runs/MODEL-SET`: `page.html` has its curves, `log.jsonl` a line for each step and epoch,
and with `--statistics` mean, deviation and dead units of each layer. At its end the test images are
asked, once. One process at a time trains in a folder.

Ctrl-C writes a checkpoint and ends, a second one ends at once. A kill, an outage or a full disk
costs the steps since the last checkpoint (`--save-every`). `--resume` goes on to the same bits. A
loss that is infinite or NaN ends a training, since no step behind it would learn.

"""


_TAIL = """PyTorch trains the same net from the same values, on the same batches in the same order,
with TF32 (`tools/train_in_pytorch.py`).

"""


def kept_run(folder, where):
    """(name, what is kept of a run)."""
    settings = json.loads((folder / "settings.json").read_text())
    lines = (json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines())
    names = ("epoch", "loss", *(kind + "_accuracy" for kind in (*KINDS, "test")), "seconds")
    found = [each for each in lines if "epoch" in each]
    epochs = [{name: each[name] for name in names if name in each} for each in found]
    key = f"{settings['model']}-{settings['epochs']}"
    return key, {"where": where, "settings": settings, "epochs": epochs}


def in_pytorch(log):
    """The part of the test images that PyTorch's net got right."""
    (found,) = re.findall(r"^test images: ([\d.]+)%$", log.read_text(), re.MULTILINE)
    return float(found) / 100


def row(run):
    """A line of the table."""
    settings, last = run["settings"], run["epochs"][-1]
    parts = (*(last.get(kind + "_accuracy") for kind in (*KINDS, "test")), run.get("in_pytorch"))
    figures = ("" if part is None else f"{100 * part:.1f} %" for part in parts)
    seconds = sum(each["seconds"] for each in run["epochs"])
    numbers = "bfloat16" if settings.get("bf16") else "TF32" if settings.get("tf32") else "float32"
    cells = (settings["model"], numbers, settings["batch"], settings["epochs"], run["where"])
    cells = (*cells, f"{last['loss']:.3f}", *figures, f"{seconds:.0f}")
    return f"| {' | '.join(map(str, cells))} |\n"


def page(runs, note):
    """(the text of the page, name -> the text of a picture)."""
    pictures, shown = {}, []
    for name, run in runs.items():
        points = {
            kind: [(each["epoch"] + 1, each[kind + "_accuracy"]) for each in run["epochs"]]
            for kind in KINDS
        }
        pictures[name + ".svg"] = str(curve(f"accuracy of {name}", "epoch", points))
        shown.append(f"![accuracy of {name} by epoch](training/{name}.svg)\n")
    head = (
        "| net | numbers | batch | epochs | where | loss | training | validation | test "
        "| test in PyTorch | s |\n|---|---|--:|--:|---|--:|--:|--:|--:|--:|--:|\n"
    )
    table = "".join([head, *map(row, runs.values())])
    return "".join([_HEAD, note, "\n\n", table, "\n", _TAIL, "\n".join(shown)]), pictures


def main():
    """Adds a run, and writes the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", nargs="?", type=Path, help="the folder of a run")
    parser.add_argument("--where", default="CPU", help="the machine, in a word or two")
    parser.add_argument("--beside", type=Path, help="what tools/train_in_pytorch.py printed")
    options = parser.parse_args()
    kept = json.loads(KEPT.read_text())
    if options.run:
        name, run = kept_run(options.run, options.where)
        if options.beside:
            run["in_pytorch"] = in_pytorch(options.beside)
        kept["runs"][name] = run
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    text, pictures = page(kept["runs"], kept["note"])
    FOLDER.mkdir(exist_ok=True)
    for name, picture in pictures.items():
        (FOLDER / name).write_text(picture)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
