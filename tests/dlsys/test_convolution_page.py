"""The page of convolutions by method says what was measured."""

import json

import convolution_methods

ROW = {
    "shape": [2, 4, 32, 1], "numbers": "float32", "kind": "value", "pytorch": [3.0, 4.0, 5.0],
    "methods": {
        "implicit": {"us": [4.0, 5.0, 6.0]}, "im2col": {"us": [1.0, 2.0, 3.0]},
        "winograd2": {"failed": "why"}, "cudnn": {"us": [0.5, 1.0, 2.0]},
    },
}  # fmt: skip


def test_a_row_has_times_and_shares_of_the_fastest_that_cudnn_has():
    (_, line) = convolution_methods.of_layers([ROW])
    assert line == (
        "| 2, 4, 32, 1 | float32 | value | 5.0 |  | 2.0 |  |  | 1.0 | 4.0 | 0.20 | 0.50 |  |\n"
    )
    laid = {"us": [2.0, 3.0, 4.0], "laid_us": [1.0, 1.25, 2.0]}
    row = {**ROW, "methods": {**ROW["methods"], "wgmma": laid}}
    (_, line) = convolution_methods.of_layers([row])
    assert line.endswith("| 3.0 | 2.0 |  |  | 1.0 | 4.0 | 0.20 | 0.50 | 0.80 |\n")


def test_a_gradient_of_weights_is_compared_with_one_that_lies_alike():
    methods = {"wgmma": {"us": [1.0, 2.0, 3.0]}}
    row = {**ROW, "kind": "weights", "methods": methods, "pytorch": [0.5, 1.0, 2.0]}
    assert convolution_methods.share_if_alike(row) == ""
    row["pytorch_dense"] = [1.0, 1.5, 2.0]
    assert convolution_methods.share_if_alike(row) == "0.75"
    methods["cudnn"] = {"us": [0.5, 1.0, 2.0]}  # which leaves it dense
    assert convolution_methods.share_if_alike(row) == ""


def test_small_convolutions_are_added_up():
    (_, line) = convolution_methods.of_small([ROW, {**ROW, "kind": "data"}])
    assert line == "| 2 | 1 | float32 | 4.0 | 2.0 | 0.50 |\n"


def test_the_page_is_what_was_measured():
    kept = json.loads(convolution_methods.KEPT.read_text())
    assert convolution_methods.page(kept) == convolution_methods.PAGE.read_text()
    assert len(kept["layers"]) == 4 * 3 * 3
    assert len(kept["small"]) == 9 * 2 * 3
