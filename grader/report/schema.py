"""The schema of a stored report, from its types: `python -m grader.report.schema` writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, TypedDict

from msgspec import Meta
from msgspec.json import schema_components

from grader.base.typed import FINITE
from grader.report.model import SCHEMA, Report, Result

FILE = Path(__file__).parent / "report.schema.json"

Count = Annotated[int, Meta(ge=0)]
_Fraction = Annotated[
    float,
    Meta(
        ge=0, le=1, description="The fraction of wrong elements; null behind the end of a vector."
    ),
]
_Row = Annotated[list[_Fraction | None], Meta(min_length=1, max_length=32)]


class Mismatch(TypedDict):
    """Where an output is wrong, seen as a matrix: its last axis across, the others down, a vector
    folded into lines."""

    shape: Annotated[list[Count], Meta(description="Of the output.", min_length=1)]
    rows: Annotated[int, Meta(description="Of the matrix.", ge=1)]
    columns: Annotated[int, Meta(description="Of the matrix.", ge=1)]
    cells: Annotated[
        list[_Row],
        Meta(description="The matrix in few cells, in its order.", min_length=1, max_length=32),
    ]


class _Told(TypedDict):
    title: Annotated[str, Meta(description="The same in a few words.")]
    text: Annotated[str, Meta(description="All of it, for a reader; it begins with the title.")]


class Finding(_Told, total=False):
    """One finding of the checked build or of compute-sanitizer."""

    tool: Annotated[str, Meta(description="checked build, or the tool of compute-sanitizer.")]
    kind: Annotated[str, Meta(description="As the tool calls it.")]
    kernel: Annotated[str, Meta(description="Its name; empty for host code.")]
    block: Annotated[
        list[int],
        Meta(description="Index of an example, x, y, z; empty if there is none.", max_length=3),
    ]
    thread: Annotated[list[int], Meta(description="The same of the thread.", max_length=3)]
    file: Annotated[str, Meta(description="Of the source; empty if unknown.")]
    line: Annotated[Count, Meta(description="In it, from 1; 0 if unknown.")]
    other_file: Annotated[str, Meta(description="Of the other access of a race.")]
    other_line: Annotated[Count, Meta(description="In that file.")]
    sentence: Annotated[str, Meta(description="Who did what to which element.")]
    cause: Annotated[str, Meta(description="Where it often comes from.")]
    hint: Annotated[str, Meta(description="What helps.")]
    count: Annotated[Count, Meta(description="Threads or times folded into it.")]
    source: Annotated[
        list[str],
        Meta(description="The line with its neighbours, numbered, the line itself marked with >."),
    ]


def report_schema() -> dict[str, Any]:
    """What Report.to_dict gives, as a JSON schema."""
    kinds = (Report, Result, Mismatch, Finding)
    _, parts = schema_components(kinds, ref_template="#/$defs/{name}")
    report, result = parts.pop("Report"), parts["Result"]
    result["properties"]["findings"]["items"] = {"$ref": "#/$defs/Finding"}  # any dict, when read
    number = {"type": "number", "minimum": 0}
    told = {
        "schema": {"const": SCHEMA, "description": "Name and version of this schema."},
        **report["properties"],
        "score": {**number, "description": "Points reached in the results, with those by hand."},
        "points": {**number, "description": "Points that could be reached in the results."},
    }
    written = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:dlsys-kit:grader-report:1",
        "title": "A report of grader grade --json",
        "description": _HEAD,
        "type": "object",
        "required": list(told),
        "properties": told,
        "$defs": parts,
    }
    result["required"] = list(
        result["properties"]
    )  # may lack in what is read, never in what is written
    return dict(_plain(written))


_HEAD = (
    "Version 1. Readers pass over properties that they do not know; a change that breaks them "
    "makes the number in `schema` larger. While `complete` is false, the results are those of the "
    "checks that have run so far."
)


def _plain(schema: Any) -> Any:
    """Without defaults, and without the bounds that only keep infinities out."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    bounds = (FINITE, -FINITE)
    kept = {key: each for key, each in schema.items() if key != "default" and each not in bounds}
    return {key: _plain(each) for key, each in kept.items()}


if __name__ == "__main__":
    FILE.write_text(json.dumps(report_schema(), indent=1) + "\n", encoding="utf-8")
