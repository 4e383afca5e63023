"""Measurements as charts of Vega-Lite: rows of data, and what is drawn of them.

Colours are variables of the page's style, so that one picture serves light and dark. A chart shows
the machine that the signal `machine` names; the page sets it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
Spec = dict[str, Any]

BASE = "one CPU core"
#: The GPU where products may be rounded, on tensor cores.
TF32 = "GPU, TF32"
#: What is compared, in the order of legends, and its colour.
WHERES = {
    "GPU": "--c1", TF32: "--c8", BASE: "--c2", "all CPU cores": "--c3", "numpy": "--c4",
    "emulated GPU": "--c5", "PyTorch, GPU": "--c6", "PyTorch, CPU": "--c6", "JAX, GPU": "--c7",
    "JAX, CPU": "--c7",
}  # fmt: skip
KINDS = {"float32": "--c1", "TF32": "--c6", "bf16": "--c4"}
#: Of a roofline: below this size a launch takes longer than the work.
ROOFLINE_FROM = 128

_SOFT, _INK, _LINE = "var(--soft)", "var(--ink)", "var(--line)"
CONFIG: Spec = {
    "background": "transparent",
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": _SOFT, "titleColor": _INK, "gridColor": _LINE, "domainColor": _SOFT,
        "tickColor": _LINE, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": 500,
        "labelOverlap": True,
    },
    "legend": {
        "orient": "bottom", "columns": 2, "labelColor": _INK, "titleColor": _SOFT, "title": None,
        "labelFontSize": 12, "symbolStrokeWidth": 2, "labelLimit": 140,
    },
    "line": {"strokeWidth": 2},
    "rule": {"color": _SOFT},
    "text": {"color": _INK, "fontSize": 12},
}  # fmt: skip


@dataclass(frozen=True)
class Chart:
    """A chart, and what stands above it."""

    name: str
    title: str
    about: str
    spec: Spec


def _us(value: float) -> str:
    """Microseconds as a person reads them."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} µs"


def _timed(point: Row) -> Row:
    """The median and quartiles of a point, in words."""
    low, middle, high = point["us"]
    said = f"{_us(low)} to {_us(high)}, {point['samples']} samples, clock: {point['clock']}"
    return {"time": _us(middle), "quartiles": said}


def _beside_base(points: Sequence[Row], same: Sequence[str]) -> list[Row]:
    """Points that one core was timed at, too: how many times its time they take less."""
    base = {tuple(str(p[key]) for key in same): p["us"][1] for p in points if p["where"] == BASE}
    found = []
    for point in points:
        one_core = base.get(tuple(str(point[key]) for key in same))
        if one_core is not None:
            low, middle, high = point["us"]
            ratios = {"times": one_core / middle, "low": one_core / high, "high": one_core / low}
            found.append({**point, **ratios, **_timed(point)})
    return found


def _points(machine: str, result: Row, what: str) -> list[Row]:
    return [
        {"machine": machine, **point}
        for point in result["points"]
        if point["what"] == what and "us" in point
    ]


def _data(rows: Sequence[Row], keys: Sequence[str]) -> Spec:
    """What a chart draws; floats to four digits, so that the page stays small."""

    def short(value: Any) -> Any:
        return float(f"{value:.4g}") if isinstance(value, float) else value

    return {"values": [{key: short(row[key]) for key in keys if key in row} for row in rows]}


def _colour(rows: Sequence[Row], key: str = "where", colours: dict[str, str] = WHERES) -> Spec:
    there = {row[key] for row in rows}
    names = [name for name in colours if name in there]
    return {
        "field": key, "type": "nominal",
        "scale": {"domain": names, "range": [f"var({colours[name]})" for name in names]},
    }  # fmt: skip


def _tooltip(**fields: str) -> list[Spec]:
    """Titles -> fields; a number as `field:.3g`."""
    found = []
    for title, field in fields.items():
        name, _, form = field.partition(":")
        kind: Spec = {"type": "quantitative", "format": form} if form else {"type": "nominal"}
        found.append({"field": name, "title": title.replace("_", " "), **kind})
    return found


_MACHINE: Spec = {"name": "machine", "value": ""}
_OF_MACHINE: Spec = {"filter": "datum.machine === machine"}
#: A click on a legend shows one; the others become faint.
_PICK: Spec = {"name": "pick", "select": {"type": "point", "fields": ["where"]}, "bind": "legend"}


def _lines(rows: Sequence[Row], x: Spec, y: Spec, tooltip: list[Spec], **more: Any) -> Spec:
    """Lines of `where`, quartiles as rules, points that can be hovered."""
    faint = {"condition": {"param": "pick", "value": 1, "empty": True}, "value": 0.15}
    shared = {"x": x, "color": _colour(rows), "opacity": faint}
    params = [_MACHINE, *more.pop("params", ())]
    return {
        "width": "container", "height": 340, "params": params,
        "transform": [_OF_MACHINE, *more.pop("transform", ())],
        "layer": [
            {"params": [_PICK], "mark": "line", "encoding": {**shared, "y": y}},
            {"mark": "rule", "encoding": {
                **shared, "y": {**y, "field": "low"}, "y2": {"field": "high"}}},
            {"mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
             "encoding": {**shared, "y": y, "tooltip": tooltip}},
        ],
        **more,
    }  # fmt: skip


def _log(field: str, title: str, base: int = 10, ticks: Sequence[float] = ()) -> Spec:
    """A logarithmic axis, with a tick at each power of ten, or at those that are given."""
    values = list(ticks) or [10.0**power for power in range(-6, 9)]
    return {
        "field": field, "type": "quantitative", "title": title,
        "scale": {"type": "log", "base": base, "nice": False, "padding": 14},
        "axis": {"format": "~g", "values": values},
    }  # fmt: skip


def speed_up(results: dict[str, Row]) -> Chart:
    """By size, of each operation."""
    same = ("machine", "op", "direction", "n")
    points = [p for name, each in results.items() for p in _points(name, each, "operation")]
    rows = _beside_base(points, same)
    ops = list(dict.fromkeys(row["op"] for row in rows))
    spec = _lines(
        rows,
        _log("n", "n, of arrays n x n", 2, [2 << power for power in range(13)]),
        _log("times", "times as fast as one CPU core"),
        _tooltip(what="op", n="n:d", on="where", times_one_core="times:.3g", median="time",
                 quartiles="quartiles"),
        data=_data(rows, (*same, "where", "times", "low", "high", "time", "quartiles")),
        params=[
            {"name": "op", "value": ops[0] if ops else "",
             "bind": {"input": "select", "options": ops, "name": "operation "}},
            {"name": "direction", "value": "forward",
             "bind": {"input": "select", "options": ["forward", "with gradients"], "name": "as "}},
        ],
        transform=[{"filter": "datum.op === op && datum.direction === direction"}],
        description="Speed-up over one CPU core by size of the arrays",
    )  # fmt: skip
    return Chart(
        "speed-up", "Beside one CPU core",
        "How many times as fast as one core of the processor, with the kit's own kernels on it, by "
        "the size of the arrays. Medians; bars are quartiles. “With gradients” computes the result "
        "and the gradients of all inputs.", spec,
    )  # fmt: skip


def nets(results: dict[str, Row]) -> Chart:
    """By parameter count."""
    points = [p for name, each in results.items() for p in _points(name, each, "net")]
    for point in points:
        point["net"] = "-".join(map(str, point["layers"]))
    rows = [r for r in _beside_base(points, ("machine", "net", "batch")) if r["batch"] == 5000]
    spec = _lines(
        rows,
        _log("parameters", "parameters of the net", 10, [5e3, 1e4, 2e4, 5e4, 1e5]),
        _log("times", "times as fast as one CPU core"),
        _tooltip(net="net", parameters="parameters:,d", on="where", times_one_core="times:.3g",
                 median="time", quartiles="quartiles"),
        data=_data(rows, ("machine", "net", "parameters", "where", "times", "low", "high", "time",
                          "quartiles")),
        description="Speed-up of a training step over one CPU core by parameters of the net",
    )  # fmt: skip
    return Chart(
        "nets", "A training step of a net of three layers",
        "Forward, backward and SGD on the full batch of 5,000 rows, from 400-16-16-10 to "
        "400-256-64-10: how many times as fast as one CPU core.", spec,
    )  # fmt: skip


def step(results: dict[str, Row]) -> Chart:
    """Of the MLP, a bar for each."""
    rows = [
        {**p, **_timed(p), "median": p["us"][1], "net": "-".join(map(str, p["layers"]))}
        for name, each in results.items()
        for p in _points(name, each, "net")
        if p["batch"] != 5000
    ]
    net = rows[0]["net"] if rows else ""
    y = {"field": "where", "type": "nominal", "title": None, "sort": "x"}
    x = _log("median", "microseconds a step", 10, [k * 10**p for p in range(7) for k in (1, 3)])
    x["scale"]["padding"] = 30
    spec = {
        "width": "container", "height": 34 * len({row["where"] for row in rows}),
        "params": [_MACHINE], "transform": [_OF_MACHINE],
        "data": _data(rows, ("machine", "where", "median", "time", "quartiles")),
        "encoding": {"y": y, "x": x},
        "layer": [
            {"mark": {"type": "point", "filled": True, "size": 160, "opacity": 1}, "encoding": {
                "color": {**_colour(rows), "legend": None},
                "tooltip": _tooltip(on="where", median="time", quartiles="quartiles")}},
            {"mark": {"type": "text", "dy": -13}, "encoding": {"text": {"field": "time"}}},
        ],
        "description": "Time of a training step of the MLP",
    }  # fmt: skip
    return Chart(
        "step", "A training step of the assignment's MLP",
        f"{net} at batch 1,000, all data on the device. The scale is logarithmic.", spec,
    )  # fmt: skip


def roofline(results: dict[str, Row]) -> Chart:
    """Operations a second over operations a byte, under what the machine can do."""
    rows, roofs = [], []
    for name, each in results.items():
        for p in _points(name, each, "operation"):
            if p.get("flops") and p["n"] >= ROOFLINE_FROM and p["where"] != TF32:
                rate, intensity = p["flops"] / p["us"][1] / 1e3, p["flops"] / p["bytes"]
                rows.append({**p, **_timed(p), "rate": rate, "intensity": intensity})
        for roof in each["roofs"]:
            roofs += _roof(name, roof)
    keys = ("machine", "where", "op", "n", "rate", "intensity", "time", "quartiles")
    x = _log("intensity", "operations a byte")
    y = _log("rate", "GFLOP/s")
    spec = {
        "width": "container", "height": 380, "params": [_MACHINE],
        "layer": [
            {"data": _data(roofs, ("machine", "roof", "rate", "intensity", "says")),
             "transform": [_OF_MACHINE],
             "mark": {"type": "line", "color": _SOFT, "strokeDash": [6, 4], "point": False},
             "encoding": {"x": x, "y": y, "detail": {"field": "roof"},
                          "tooltip": _tooltip(roof="roof", of="says")}},
            {"data": _data(rows, keys), "transform": [_OF_MACHINE], "params": [_PICK],
             "mark": {"type": "point", "filled": True, "size": 60},
             "encoding": {
                 "x": x, "y": y, "color": _colour(rows),
                 "opacity": {"condition": {"param": "pick", "value": 0.9, "empty": True},
                             "value": 0.06},
                 "tooltip": _tooltip(what="op", n="n:d", on="where", GFLOPs_a_second="rate:,.4g",
                                     operations_a_byte="intensity:.3g", median="time",
                                     quartiles="quartiles")}},
        ],
        "description": "Roofline: operations a second over operations a byte",
    }  # fmt: skip
    return Chart(
        "roofline", "Roofline",
        f"Operations from n = {ROOFLINE_FROM} on, forward. Under the slope a kernel waits for "
        "memory, under the flat part for arithmetic in float32. What lies above a roof of memory "
        "was read from a cache. A click on the legend picks one.", spec,
    )  # fmt: skip


def _roof(machine: str, roof: Row) -> list[Row]:
    """Three corners of a roof; none where the machine's operations are not known."""
    most, bandwidth = roof["flops_a_second"], roof["bytes_a_second"]
    if not most:
        return []
    says = f"{bandwidth / 1e9:,.0f} GB/s, {most / 1e9:,.0f} GFLOP/s: {roof['from']}"
    corners = (0.05, most / bandwidth, 2000.0)
    return [
        {"machine": machine, "roof": roof["where"], "intensity": x, "says": says,
         "rate": min(most, bandwidth * x) / 1e9}
        for x in corners
    ]  # fmt: skip


def threads(results: dict[str, Row]) -> Chart:
    """What share of its best speed a kernel has, by threads a block."""
    rows = []
    for name, each in results.items():
        points = _points(name, each, "blocks")
        for p in points:
            best = min(q["us"][1] for q in points if q["kernel"] == p["kernel"])
            low, middle, high = (best / us for us in p["us"])
            rows.append({**p, **_timed(p), "share": middle, "low": high, "high": low,
                         "takes": _takes(p)})  # fmt: skip
    for row in rows:
        row["where"] = row["kernel"]
    kernels = dict.fromkeys(row["kernel"] for row in rows)
    colours = dict(zip(kernels, ("--c1", "--c2", "--c4", "--c6"), strict=False))
    spec = _lines(
        rows,
        _log("threads", "threads a block", 2, [32, 64, 128, 256, 512, 1024]),
        {"field": "share", "type": "quantitative", "title": "share of its best speed",
         "axis": {"format": "%"}, "scale": {"domainMin": 0}},
        _tooltip(kernel="kernel", n="n:d", threads="threads:d", of_the_best="share:.0%",
                 median="time", quartiles="quartiles", takes="takes"),
        data=_data(rows, ("machine", "where", "kernel", "n", "threads", "share", "low", "high",
                          "time", "quartiles", "takes")),
        description="Speed of four plain kernels by threads a block",
    )  # fmt: skip
    for layer in spec["layer"]:
        layer["encoding"]["color"] = _colour(rows, "where", colours)
    return Chart(
        "threads", "Threads a block",
        "Four plain kernels, launched with 32 to 1,024 threads a block. Few threads leave a "
        "multiprocessor half empty, since it holds a limited number of blocks; many wait for one "
        "another at each barrier. The emulated GPU shows what barriers cost there, not on a GPU.",
        spec,
    )  # fmt: skip


def _takes(point: Row) -> str:
    if "registers" not in point:
        return "not known of an emulated GPU"
    said = f"{point['registers']} registers a thread"
    share = point.get("occupancy")
    return said if share is None else f"{said}: occupancy {share:.0%}"


def ladder(kept: Row) -> Chart:
    """The rungs of docs/gemm_ladder.json, by their share of cuBLAS."""
    rows = []
    for number, (name, row) in enumerate(kept["rows"].items()):
        if "failed" in row:
            continue
        shape, us, base = (row["shapes"][0][key] for key in ("shape", "us", "cublas"))
        kind = next((kind for kind in KINDS if name.endswith(kind)), "float32")
        rate = 2e-6 * shape[0] * shape[1] * shape[2] / us[1]
        rows.append({"rung": f"{number + 1} {name}", "kind": kind, "n": shape[0],
                     "share": base[1] / us[1], "rate": rate,
                     "time": f"{_us(us[1])} ({_us(us[0])} to {_us(us[2])})"})  # fmt: skip
    y = {"field": "rung", "type": "nominal", "title": None, "sort": None,
         "axis": {"labelLimit": 130}}  # fmt: skip
    x = {"field": "share", "type": "quantitative", "title": "share of cuBLAS's speed",
         "scale": {"domainMin": 0, "domainMax": 1.12},
         "axis": {"format": "%", "tickCount": 5}}  # fmt: skip
    spec = {
        "width": "container", "height": 26 * len(rows), "params": [_MACHINE],
        "data": _data(rows, ("rung", "kind", "n", "share", "rate", "time")),
        "encoding": {"y": y, "x": x},
        "layer": [
            {"mark": {"type": "bar", "cornerRadiusEnd": 3}, "encoding": {
                "color": _colour(rows, "kind", KINDS),
                "tooltip": _tooltip(rung="rung", n="n:d", numbers="kind", of_cuBLAS="share:.1%",
                                    TFLOPs_a_second="rate:.3g", time="time")}},
            {"mark": {"type": "text", "align": "left", "dx": 4}, "encoding": {
                "text": {"field": "share", "type": "quantitative", "format": ".1%"}}},
        ],
        "description": "Rungs of the GEMM ladder by their share of cuBLAS's speed",
    }  # fmt: skip
    return Chart(
        "ladder", "The GEMM ladder",
        f"The lessons of solution/src/gemm/ on {kept['device']}, {kept['date']}: float32 at "
        "n = 4096, the others at n = 8192, each beside cuBLAS with the same numbers.", spec,
    )  # fmt: skip
