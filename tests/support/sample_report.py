"""A report with everything in it that a report can hold, for the tests of what is made of it."""

import numpy as np

from grader.checks.harness.compare import mismatch
from grader.course.rubric import AFTER_DUE_DATE, ALWAYS, NEVER
from grader.explain import findings
from grader.report.model import ERROR, FAIL, PASS, SKIPPED, Report, Result

#: What a submission might print to break a page, an XML file, a terminal, or the reader's trust.
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> "
    "</pre></p>]]>&amp;&#0;{{ 7 * 7 }}{% raw %}' \" "
    "\x00\x08\x0b\x1b[31m\x1b]0;owned\x07 \x7f\x9b2J "
    "\u202e\u2066 \ud800 \ufffe \U0001f600 é [/bold] <!-- --> https://example.invalid/x.png"
)


def result(check, status=PASS, task="2.11", points=1.0, visibility=ALWAYS, **more):
    """One result; a pass has its points."""
    score = points if status == PASS else 0.0
    line = f"{check} does what it should"
    return Result(check, task, points, score, status, line, visibility=visibility, **more)


def rows_wrong():
    """The picture of a matrix whose last rows are wrong."""
    wrong = np.zeros((100, 40), bool)
    wrong[90:] = True
    return mismatch(wrong)


def finding():
    """What the checked build found, in a kernel whose source is hostile."""
    found = findings.finding(
        tool="checked build", kind="out of bounds", title="Write behind the end",
        sentence="thread 3 writes 4 bytes behind the end of out", kernel="relu_kernel",
        block=[0, 0, 0], thread=[3, 0, 0], place=("src/gpu_op.cu", 2), count=3,
        cause="No guard.", hint="compare the index with the size.",
    )  # fmt: skip
    source = f"int i = threadIdx.x;\nout[i] = x[i];  // {HOSTILE}\n"
    return findings.quoted(found, {"src/gpu_op.cu": source.encode("utf-8", "replace")})


def training():
    """Facts of a check that trains."""
    fact = {"accuracy": 0.91, "wanted": 0.8, "losses": [2.3, 0.9, 0.4], "epoch_seconds": 0.25}
    return {"mlp_gpu": fact, "recipe": {"train": 2000, "source": "/data/mnist"}}


def results():
    """Every status, every visibility."""
    return [
        result("build", task="", points=0.0, seconds=3.5),
        result("topological_order", task="1.1", points=2.0, seconds=0.4),
        result(
            "relu",
            FAIL,
            message=f"relu: wrong {HOSTILE}",
            hint=HOSTILE,
            seconds=1.5,
            details=[HOSTILE, "second line", f"src/gpu_op.cu:12: {finding()['sentence']}"],
            facts={"mismatch": rows_wrong()},
            findings=[finding()],
        ),
        result("softmax", SKIPPED, task="2.13", message="needs relu"),
        result(
            "array_set",
            ERROR,
            task="2.3",
            message="OSError: the secret disk is full",
            details=["Traceback: secret.py"],
        ),
        result(
            "memory_plan",
            FAIL,
            task="2.2",
            points=3.0,
            visibility=AFTER_DUE_DATE,
            message="a hidden mistake",
        ),
        result("softmax_cross_entropy", task="", points=0.0, visibility=NEVER),
        result("mnist_gpu", task="2.2", points=2.0, seconds=6.0, facts=training()),
    ]


def report(rows=None, **more):
    """The report of an instructor, of these results."""
    values = dict(
        submission="/home/teacher/inbox/<b>smith.tar.gz",
        sha256="0" * 64,
        profile="default",
        title="Autodiff and a GPU graph executor",
        device="emulated",
        isolation="process",
        seed="5ec4e7",
        started="2026-01-02T03:04:05+00:00",
        notes=[f"ignored {HOSTILE}"],
        results=results() if rows is None else rows,
        seconds=12.5,
        complete=True,
        parts={"1": "autodiff", "2": "gpu executor"},
        tasks={
            "1.1": "topological order",
            "2.2": "memory plan",
            "2.3": "array_set",
            "2.11": "relu",
            "2.13": "softmax",
        },
    )
    return Report(**{**values, **more})
