"""What is wrong in a file is said with table, key and value, however deep it lies."""

from typing import Annotated, Literal

import pytest
from msgspec import Meta, Struct

from grader.base.typed import Amount, Positive, Text, typed

Key = Annotated[str, Meta(pattern="^[a-z]$", extra={"expected": "a letter"})]


class Entry(Struct, forbid_unknown_fields=True):
    name: Text
    share: Annotated[float, Meta(ge=0, le=1)] = 0.0


class Inner(Struct, forbid_unknown_fields=True):
    amounts: dict[Key, Amount] = {}
    kind: Literal["a", "b", "c"] | None = None


class File(Struct, forbid_unknown_fields=True):
    inner: Inner
    check: list[Entry] = []
    rows: list[Positive] = []


def said(raw, where=""):
    with pytest.raises(ValueError, match=" ") as caught:
        typed(raw, File, where)
    return str(caught.value)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({}, "[inner] is missing"),
        ([], "the file is [], expected a table"),
        ({"inner": 3}, "inner is 3, expected a table"),
        ({"inner": {}, "x": 1}, "the file has the unknown key 'x'; hint: one of inner, "),
        ({"inner": {"kind": "d"}}, "[inner] kind is 'd', expected a, b or c"),
        ({"inner": {"kind": 3}}, "[inner] kind is 3, expected a, b or c"),
        ({"inner": {"amounts": {"a": 1, "b": "x"}}}, "[inner.amounts] b is 'x', expected a number"),
        ({"inner": {"amounts": {"a": 1, "B": 2}}}, "[inner.amounts] has 'B', expected a letter"),
        ({"inner": {}, "check": [{"name": "relu", "share": 2}]},
         "check 'relu': share is 2, expected a number from 0 to 1"),
        ({"inner": {}, "check": [{}]}, "check[0]: name is missing"),
        ({"inner": {}, "check": [{"name": " "}]}, "check ' ': name is ' ', expected a non-empty "),
        ({"inner": {}, "rows": [1, 2, 0]}, "rows holds 0, expected a number above 0"),
    ],
)  # fmt: skip
def test_each_fault_is_said_with_its_place(raw, words):
    assert said(raw).startswith(words)


def test_of_two_faults_the_first_is_said_with_its_own_key():
    raw = {"inner": {"amounts": {"a": 1, "b": "x"}}, "check": [{"name": 3}]}
    assert said(raw).startswith("[inner.amounts] b is 'x'")


def test_the_table_s_own_name_comes_first():
    assert said({"inner": {"kind": "d"}}, "late").startswith("[late.inner] kind is 'd'")


def test_a_long_value_is_cut():
    assert said({"inner": "x" * 99}) == f"inner is '{'x' * 39}..., expected a table"


def test_neither_infinity_nor_nan_is_an_amount():
    for value in (float("inf"), float("nan")):
        assert "expected a number from 0 on" in said({"inner": {"amounts": {"a": value}}})
