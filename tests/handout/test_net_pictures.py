"""The pictures of part 4 show what is computed, and what the reference has."""

import math

from dlsys import models, nn, ops
from grader.course.course import kit_course
from grader.handout import net_pictures


def test_the_picture_of_im2col_is_a_convolution():
    rows = len(net_pictures.FILTER)
    found = [
        sum(
            net_pictures.FILTER[i][j] * net_pictures.IMAGE[y + i][x + j]
            for i in range(rows)
            for j in range(rows)
        )
        for y in range(2)
        for x in range(3)
    ]
    assert net_pictures.products() == found == [4, -1, 0, 2, 6, 6]


def test_the_picture_of_receptive_fields_counts_what_moves_an_element():
    for layers, field in zip(net_pictures.PANELS, (7, 11), strict=True):
        assert net_pictures.receptive_fields(layers)[-1] == field
        seen = {0}
        for kernel, stride in reversed(layers):
            seen = {at * stride + i for at in seen for i in range(kernel)}
        assert len(seen) == field


def test_the_picture_of_memory_has_the_sizes_of_the_reference_net():
    net = models.resnet20()
    net(ops.variable("x", (net_pictures.BATCH, 3, net_pictures.SIDE, net_pictures.SIDE)))
    sizes = {
        name: 4 * math.prod(module.shapes[1])
        for name, module in net.modules()
        if isinstance(module, nn.Conv2d)
    }
    parts = net_pictures.kept_of_training()
    assert sum(part.normed for part in parts) == sum(sizes.values())
    changing = [size for name, size in sizes.items() if "downsample" in name]
    assert sum(part.passed for part in parts) == sum(sizes.values()) - sum(changing)
    total = sum(part.normed + part.passed for part in parts)
    chapter = (kit_course().handout.parent / "nets/20-part-4-conv-nets.md.j2").read_text()
    assert f"the peak is {total / 1e6:.0f} MB" in chapter
