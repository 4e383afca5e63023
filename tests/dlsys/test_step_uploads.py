"""What a step is fed from numpy: the same values by every way to a GPU, and who reads when."""

import gc
import threading

import numpy as np
import pytest
from test_step import CONTEXTS, EVERYWHERE

import dlsys
from dlsys import autodiff, ndarray, ops
from dlsys.backend import program, uploads

GPU = ndarray.gpu(0)
ROWS = (8, 8, 8, 5, 8, 3, 3)


def training(ctx, **options):
    """A small net under SGD: (step, its feeds: images, labels)."""
    x, labels = ops.variable("x"), ops.variable("labels")
    draw = np.random.default_rng(1)
    w = [
        dlsys.parameter(f"w{i}", draw.normal(size=s) * 0.4) for i, s in enumerate([(6, 9), (9, 4)])
    ]
    loss = ops.cross_entropy(ops.tanh(x @ w[0]) @ w[1], labels)
    updates = {p: p - 0.3 * g for p, g in zip(w, autodiff.gradients(loss, w), strict=True)}
    return dlsys.compile([loss, x * 2], updates, ctx, **options), (x, labels)


def batches(rows=ROWS):
    """Images and labels, of so many rows each."""
    draw = np.random.default_rng(2)
    return [(draw.normal(size=(n, 6)).astype(np.float32), draw.integers(0, 4, n)) for n in rows]


def reused(nodes, kept, room=np.empty):
    """The same as feeds of which each lies where the one before lay."""
    images, labels = room((8, 6), np.float32), room(8, np.int64)
    for image, label in kept:
        images[:], labels[:] = np.nan, -1
        images[: len(image)], labels[: len(label)] = image, label
        yield {nodes[0]: images[: len(image)], nodes[1]: labels[: len(label)]}


def result(step, found):
    """All that some calls returned and left, as bytes."""
    values = [[np.array(value).tobytes() for value in each] for each in found]
    return values, [step.get(name).tobytes() for name in step.state]


def pinned_room(shape, dtype):
    return dlsys.pinned(np.zeros(shape, dtype))


@EVERYWHERE
@pytest.mark.parametrize("as_numpy", [True, False])
def test_a_walk_over_batches_gives_what_calls_give_though_arrays_are_used_again(ctx, as_numpy):
    step, nodes = training(ctx)
    wanted = result(step, ([np.array(v) for v in step(dict(zip(nodes, each, strict=True)))]
                           for each in batches()))  # fmt: skip
    for room in (np.empty, pinned_room):
        step, nodes = training(ctx)
        walk = step.over(reused(nodes, batches(), room), as_numpy)
        assert result(step, ([np.array(v) for v in each] for each in walk)) == wanted


@pytest.mark.parametrize("capture", [True, False], ids=["captured", "not captured"])
def test_calls_on_a_gpu_have_the_same_bits_from_numpy_and_from_its_own_memory(capture):
    step, nodes = training(GPU, capture=capture)
    own = ({x: ndarray.array(a, GPU, a.dtype) for x, a in zip(nodes, each, strict=True)}
           for each in batches())  # fmt: skip
    wanted = result(step, ([np.array(v) for v in step(feeds)] for feeds in own))
    step, nodes = training(GPU, capture=capture)
    calls = ([np.array(v) for v in step(feeds)] for feeds in reused(nodes, batches()))
    assert result(step, calls) == wanted


def test_feeds_may_be_of_both_kinds_and_change_from_call_to_call():
    x, y = ops.variable("x"), ops.variable("y")
    step = dlsys.compile([x - y, y], {}, GPU)
    kinds = {"numpy": np.asarray, "own": lambda a: ndarray.array(a, GPU)}
    for i, (a, b) in enumerate([*np.ndindex(2, 2)] * 3):
        values = [np.full(3, i, np.float32), np.full(3, i * i, np.float32)]
        made = [list(kinds.values())[k](v) for k, v in zip((a, b), values, strict=True)]
        difference, same = step({x: made[0], y: made[1]}, as_numpy=True)
        np.testing.assert_array_equal(difference, values[0] - values[1])
        np.testing.assert_array_equal(same, values[1])


@EVERYWHERE
def test_the_next_feeds_are_taken_while_a_gpu_computes_and_no_sooner(ctx):
    x, seen = ops.variable("x"), []

    def feeds():
        for i in range(3):
            seen.append(f"take {i}")
            yield {x: np.full(2, i)}

    step = dlsys.compile(x * 2, {}, ctx)
    for value in step.over(feeds(), as_numpy=True):
        seen.append(f"give {value[0] / 2:.0f}")
    ahead = "take 0, take 1, give 0, take 2, give 1, give 2"
    plain = "take 0, give 0, take 1, give 1, take 2, give 2"
    assert ", ".join(seen) == (ahead if ctx is CONTEXTS["gpu"] else plain)
    assert list(step.over([])) == []


@EVERYWHERE
def test_feeds_that_do_not_fit_end_the_walk_behind_the_last_step_that_ran(ctx):
    w, x = dlsys.parameter("w", np.zeros(2)), ops.variable("x", (2,))
    step = dlsys.compile(w, {w: w + x}, ctx)
    walk = step.over([{x: np.ones(2)}, {x: np.ones(2)}, {x: np.ones(3)}])
    with pytest.raises(ops.base.ShapeError, match=r"x has shape \(2,\), the feed has \(3,\)"):
        list(walk)
    np.testing.assert_array_equal(step.get(w), [2, 2])
    step({x: np.full(2, 5.0)})
    np.testing.assert_array_equal(step.get(w), [7, 7])


def test_one_step_is_filled_in_turn_and_keeps_its_memory():
    step, nodes = training(GPU)
    places = []
    for feeds in reused(nodes, batches([8] * 5)):
        step._uploads.fill(feeds)
        places.append(step._uploads._arrays[step._uploads._half][nodes[0]].handle.contents.data)
    assert len(set(places)) == 2 and places[:2] * 2 == places[:4] and places[4] == places[0]


def test_pinned_memory_lives_as_long_as_what_is_cut_from_it(monkeypatch):
    freed, plain = [], uploads.functions()
    unpin = {"unpin": lambda address: freed.append(plain["unpin"](address))}
    monkeypatch.setattr(uploads, "functions", lambda: {**plain, **unpin})
    values = np.arange(12.0).reshape(4, 3)
    for dtype in (None, np.float32, np.int64, "float16"):
        array = dlsys.pinned(values, dtype)
        assert array.dtype == (dtype or np.float64) and array.flags.c_contiguous
        np.testing.assert_array_equal(array, values)
        cut = array[1:3]
        del array
        gc.collect()
        assert not freed
        np.testing.assert_array_equal(cut, values[1:3])
        del cut
        gc.collect()
        assert freed == [0]
        freed.clear()
    assert dlsys.pinned([]).shape == (0,) and dlsys.pinned(3).shape == ()


def test_no_pinned_memory_is_told(monkeypatch):
    monkeypatch.setattr(uploads, "functions", lambda: {"pin": lambda size: None})
    with pytest.raises(MemoryError, match="no 24 bytes of pinned memory; hint: "):
        dlsys.pinned([1.0, 2.0, 3.0])


def test_what_is_filled_in_turn_is_read_where_it_arrives_and_recorded_there(monkeypatch):
    step, nodes = training(GPU)
    feeds = [dict(zip(nodes, each, strict=True)) for each in batches((8,) * 8)]
    for each in feeds[:4]:
        step(each)
    monkeypatch.setattr(ndarray.NDArray, "copyto", None)
    launches = []
    monkeypatch.setattr(program.Program, "launch", lambda *arguments: launches.append(arguments))
    found = [step(each)[1].asnumpy() for each in feeds[4:]]
    assert not launches
    for value, each in zip(found, feeds[4:], strict=True):
        assert value.tobytes() == (each[nodes[0]] * 2).tobytes()


@EVERYWHERE
def test_calls_in_the_middle_of_a_walk_change_none_of_its_values(ctx):
    x = ops.variable("x")
    step, found = dlsys.compile(x * 2, ctx=ctx), []
    for value in step.over(({x: np.full(3, i, np.float32)} for i in range(5)), as_numpy=True):
        found.append(value[0])
        for other in (50, 60):
            step({x: np.full(3, other, np.float32)})
    assert found == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("ctx", [GPU, ndarray.cpu(0)], ids=["gpu", "cpu"])
def test_what_a_step_returned_may_be_fed_the_other_way_round(ctx):
    x, y = ops.variable("x"), ops.variable("y")
    step = dlsys.compile([x, y, x + y * 10], ctx=ctx)
    for number in range(3):
        fed = [ndarray.array(np.full(3, number + k, np.float32), ctx) for k in (1, 5)]
        a, b, _ = step(dict(zip((x, y), fed, strict=True)))
    assert [value.asnumpy()[0] for value in step({x: b, y: a})] == [7, 3, 37]


def counted(ctx):
    """A step that counts its calls and doubles what it is fed: (step, x, w)."""
    w, x = dlsys.parameter("w", np.zeros(3)), ops.variable("x", (3,))
    return dlsys.compile(x * 2, {w: w + 1}, ctx), x, w


def filled(numbers, x):
    """Feeds of these numbers, each in the array of the one before."""
    array = np.empty(3, np.float32)
    for number in numbers:
        array[:] = number
        yield {x: array}


def failing(x):
    yield from filled((1, 2), x)
    raise OSError("the disk is gone")


def misshapen(x):
    yield from filled((1, 2), x)
    yield {x: np.zeros(4)}


@EVERYWHERE
@pytest.mark.parametrize("feeds, error", [(failing, OSError), (misshapen, ops.base.ShapeError)])
def test_a_walk_that_fails_gives_the_values_of_every_step_that_it_made(ctx, feeds, error):
    step, x, w = counted(ctx)
    found = []
    with pytest.raises(error):
        for value in step.over(feeds(x), as_numpy=True):
            found.append(value[0])
    assert found == [2, 4] and step.get(w)[0] == 2


@EVERYWHERE
@pytest.mark.parametrize("as_numpy", [True, False])
def test_feeds_that_call_the_step_change_no_value_of_the_walk(ctx, as_numpy):
    step, x, _ = counted(ctx)

    def feeds():
        for each in filled(range(4), x):
            step({x: np.full(3, 50.0)})
            assert [v[0] for v in step.over(filled((7, 8, 9), x), as_numpy=True)] == [14, 16, 18]
            yield each

    found = [np.array(value)[0] for value in step.over(feeds(), as_numpy)]
    assert found == [0, 2, 4, 6]


@EVERYWHERE
def test_walks_of_one_step_side_by_side_give_each_its_own_values(ctx):
    step, x, _ = counted(ctx)
    walks = (step.over(filled(range(a, a + 5), x), as_numpy=True) for a in (0, 100))
    assert [(a[0], b[0]) for a, b in zip(*walks, strict=True)] == [
        (2 * i, 200 + 2 * i) for i in range(5)
    ]


@EVERYWHERE
def test_what_a_walk_has_taken_stays_though_its_array_changes_and_the_step_is_called(ctx):
    step, x, _ = counted(ctx)
    array, found = np.empty(3, np.float32), []

    def feeds():
        for number in range(5):
            array[:] = number
            yield {x: array}

    for value in step.over(feeds(), as_numpy=True):
        found.append(value[0])
        array[:] = -7
        for other in range(len(found)):
            step({x: np.full(3, 50.0 + other)})
        step.run_of({x: np.zeros(3)})
    assert found == [0, 2, 4, 6, 8]


@EVERYWHERE
def test_threads_that_call_one_step_have_each_their_own_values(ctx):
    step, x, w = counted(ctx)
    step({x: np.zeros(3)})
    wrong = []

    def call(base):
        values = (step({x: np.full(3, base + i)}, as_numpy=True)[0] for i in range(30))
        walked = (v[0] for v in step.over(filled(range(base, base + 30), x), as_numpy=True))
        for way in (values, walked):
            found = list(way)
            if found != [2 * (base + i) for i in range(30)]:
                wrong.append(found)

    threads = [threading.Thread(target=call, args=(1000 * k,)) for k in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong and step.get(w)[0] == 181
