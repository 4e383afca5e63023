"""Writes measurements as one HTML page, whose charts Vega-Lite draws; it needs no network.

Vega-Lite and what it needs are 0.9 MB of script inside the page (BSD licence), a fifth of plotly's.
A security policy in the page forbids every request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from grader.base.files import write_whole
from grader.report.html import templates

from . import charts
from .built import KIT, BenchError
from .charts import BASE, TF32, Row

LADDER = KIT / "docs" / "gemm_ladder.json"
#: What a GPU is to reach beside one core: what -> (its points, the ratio).
TARGETS = {
    "matmul, n = 1,024": ({"what": "operation", "op": "matmul", "n": 1024, "direction": "forward"},
                          480),
    "a step of 400-256-64-10, batch 5,000": ({"what": "net", "parameters": 119754}, 148),
}  # fmt: skip


def script() -> str:
    """Vega-Lite and its embedding, as JavaScript.

    Raises:
        BenchError: the plotting library is not installed.
    """
    try:
        import vl_convert
    except ImportError:
        raise BenchError(
            "the page needs vl-convert-python; hint: python3 -m pip install 'dlsys-kit[bench]', or "
            "make it elsewhere: grader bench --page FILE.json"
        ) from None
    return _bundle(vl_convert.javascript_bundle)


@cache
def _bundle(make: Callable[[str], str]) -> str:
    return make("window.vegaEmbed = vegaEmbed;")


def read(paths: Sequence[Path]) -> dict[str, Row]:
    """Name of a machine -> its measurement.

    Raises:
        BenchError: a file is no measurement.
    """
    found: dict[str, Row] = {}
    for path in paths:
        try:
            result = json.loads(path.read_text())
            is_one = result["kind"] == "bench" and bool(result["machine"])
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise BenchError(
                f"{path} is no measurement: {error}; hint: grader bench --json FILE"
            ) from None
        if not is_one:
            raise BenchError(f"{path} is no measurement; hint: grader bench --json FILE")
        name = name_of(result["machine"])
        found[name if name not in found else f"{name} ({path.name})"] = result
    return found


def name_of(machine: Row) -> str:
    """Of a machine, by its GPU, or by its processor where that is emulated."""
    if machine["backend"] == "cuda":
        return f"{machine['name']}, {machine['date']}"
    said = f"{machine['processors']} cores of {machine['processor']}"
    return f"{said}, emulated GPU, {machine['date']}"


def targets(results: dict[str, Row]) -> list[Row]:
    """What is asked of a GPU, and what was measured of each; nothing where there is none."""
    found = []
    for name, result in results.items():
        for title, (facts, least) in TARGETS.items():
            us = {
                p["where"]: p["us"][1]
                for p in result["points"]
                if "us" in p and all(p.get(key) == value for key, value in facts.items())
            }
            for where in ("GPU", TF32):
                if where in us and BASE in us:
                    times = us[BASE] / us[where]
                    found.append({"machine": name, "what": f"{title}, {where}", "least": least,
                                  "times": times, "met": times > least})  # fmt: skip
    return found


def left_out(results: dict[str, Row]) -> list[Row]:
    """What was not timed, and why."""
    found = []
    for name, result in results.items():
        for where, why in result["missing"].items():
            found.append({"machine": name, "what": where, "why": why})
        for p in result["points"]:
            if "skipped" in p:
                what = f"{p['op']}, {p['n']} x {p['n']}, {p['direction']}" if "op" in p else (
                    "-".join(map(str, p["layers"])))  # fmt: skip
                found.append({"machine": name, "what": f"{what}, {p['where']}",
                              "why": p["skipped"]})  # fmt: skip
    return found


def made(results: dict[str, Row]) -> list[charts.Chart]:
    """The charts for which there are data."""
    found = [make(results) for make in (
        charts.speed_up, charts.nets, charts.step, charts.roofline, charts.threads)]  # fmt: skip
    if LADDER.is_file():
        found.append(charts.ladder(json.loads(LADDER.read_text())))
    return [each for each in found if _has_data(each.spec)]


def _has_data(spec: Any) -> bool:
    own = spec.get("data", {}).get("values")
    return bool(own) or any(_has_data(layer) for layer in spec.get("layer", ()))


def _in_script(value: Any) -> str:
    """JSON that no reader of HTML takes for the end of a script."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def page(results: dict[str, Row]) -> str:
    """The text of the page; raises as `script` does."""
    shown = made(results)
    for chart in shown:
        chart.spec["config"] = charts.CONFIG
    text = (
        templates()
        .get_template("bench.html.j2")
        .render(charts=shown, results=results, targets=targets(results), left_out=left_out(results))
    )
    # Behind the template, which would look at each of its letters.
    text = text.replace("/* specs */", _in_script({chart.name: chart.spec for chart in shown}))
    return text.replace("/* library */", script().replace("</script", "<\\/script"))


def write(paths: Sequence[Path], target: Path) -> None:
    """Reads measurements and writes their page; raises as `read` and `script` do."""
    text = page(read(paths))
    write_whole(target, text)
