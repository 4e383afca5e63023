"""docs/passes.md and its pictures, which tools/pass_pictures.py makes."""

import xml.etree.ElementTree as ElementTree

import pytest

import pass_pictures
from dlsys.step import passes

HINT = "hint: python tools/pass_pictures.py"


def words(picture):
    """The first line of every box."""
    groups = ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}g")
    return [group.findtext("{http://www.w3.org/2000/svg}text") for group in groups]


def test_the_page_and_its_pictures_are_fresh():
    page, files = pass_pictures.made()
    assert page == pass_pictures.PAGE.read_text(), HINT
    kept = {path.name: path.read_text() for path in pass_pictures.FOLDER.iterdir()}
    assert kept == {name: picture + "\n" for name, picture in files.items()}, HINT


def test_every_pass_of_a_step_is_there():
    assert {apply for apply, *_ in pass_pictures.GRAPH_PASSES.values()} == set(passes.PASSES)


@pytest.mark.parametrize(
    "name, before, after",
    [
        ("simplify", ["x", "transpose", "transpose", "exp", "mul_by_const 1", "reshape", "reshape"],
         ["x", "exp", "reshape"]),
        ("into_products", ["x", "w", "transpose", "matmul"], ["x", "w", "matmul trans_b"]),
        ("fold_constants", ["constant", "mul_by_const 0.1", "x", "exp", "mul"],
         ["x", "known", "mul"]),
        ("update_in_place", ["w", "x", "elementwise", "reduce sum", "elementwise", "elementwise",
                             "copy", "w"],
         ["w", "x", "elementwise", "reduce sum", "elementwise", "elementwise", "w"]),
        ("fuse", ["x", "w", "product", "b", "elementwise", "mask", "elementwise", "elementwise"],
         ["x", "w", "product", "b", "mask", "fused"]),
        ("with_products", ["x", "w", "product", "b", "mask", "fused"],
         ["x", "w", "b", "mask", "gemm"]),
    ],
)  # fmt: skip
def test_pictures_show_what_a_pass_changes(name, before, after):
    _, files = pass_pictures.made()
    assert sorted(words(files[f"{name}-before.svg"])) == sorted(before)
    assert sorted(words(files[f"{name}-after.svg"])) == sorted(after)
