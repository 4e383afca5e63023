"""Arrays go to and from other libraries without a copy, and live as long as somebody needs them."""

import gc
import weakref

import numpy as np
import pytest

from dlsys import dlpack, dtypes, ndarray


@pytest.fixture(autouse=True)
def nothing_stays_lent():
    yield
    gc.collect()
    assert dlpack._LENT == {}


def sixes():
    return ndarray.array(np.arange(6).reshape(2, 3))


def test_numpy_sees_the_memory_of_an_array_on_the_cpu():
    array = sixes()
    seen = np.asarray(array)
    seen[0, 1] = 7
    assert array.asnumpy().tolist() == [[0, 7, 2], [3, 4, 5]]
    assert np.array(array, copy=True).base is None
    assert np.asarray(array, dtype=np.float64).dtype == np.float64


def test_what_numpy_sees_keeps_the_memory_alive():
    seen = np.asarray(sixes())
    gc.collect()
    others = [ndarray.array(np.full((2, 3), -1.0)) for _ in range(50)]
    assert seen.tolist() == [[0, 1, 2], [3, 4, 5]] and len(others) == 50


def test_an_array_on_the_gpu_is_copied_for_numpy():
    array = ndarray.array(np.arange(3), ctx=ndarray.gpu(0))
    assert np.asarray(array).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(array, copy=False)


def test_an_array_is_lent_and_given_back():
    array = sixes()
    lent = np.from_dlpack(array)
    assert lent.__array_interface__["data"][0] == array.handle.contents.data
    del array
    gc.collect()
    assert lent.tolist() == [[0, 1, 2], [3, 4, 5]] and len(dlpack._LENT) == 1


def test_a_capsule_that_nobody_takes_gives_back_too():
    capsule = sixes().__dlpack__()
    assert len(dlpack._LENT) == 1
    del capsule


def test_an_array_of_numpy_is_borrowed_and_given_back():
    class Own(np.ndarray):
        """An array of which a weak reference can be had."""

    source = np.arange(12, dtype=np.float32).reshape(3, 4).view(Own)
    gone = weakref.ref(source)
    array = ndarray.from_dlpack(source)
    source[1, 1] = 50
    assert array.shape == (3, 4) and array.asnumpy()[1, 1] == 50
    address = source.ctypes.data
    assert array.handle.contents.data == address
    del source
    gc.collect()
    assert gone() is not None and array.asnumpy()[2, 3] == 11
    del array
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 5, 1)])
def test_arrays_of_any_shape_go_both_ways(shape):
    source = np.full(shape, 2, dtype=np.float32)
    array = ndarray.from_dlpack(source)
    assert array.shape == shape
    assert np.array_equal(np.from_dlpack(array), source)


def test_a_part_begins_where_it_begins():
    source = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert ndarray.from_dlpack(source[1:]).asnumpy().tolist() == source[1:].tolist()


def test_what_cannot_be_borrowed_is_refused_in_words():
    with pytest.raises(TypeError, match="hint: convert to one of float32, "):
        ndarray.from_dlpack(np.arange(3.0, dtype=complex))
    with pytest.raises(ValueError, match="hint: make it contiguous first"):
        ndarray.from_dlpack(np.ones((3, 4), dtype=np.float32).T)
    with pytest.raises(TypeError, match="list has no __dlpack__"):
        ndarray.from_dlpack([1.0])


def test_memory_of_an_emulated_gpu_is_not_lent():
    array = ndarray.array(np.ones(3), ctx=ndarray.gpu(0))
    if not ndarray.is_emulated():
        pytest.skip("the GPU is real")
    with pytest.raises(BufferError, match="hint: its asnumpy"):
        np.from_dlpack(array)
    assert not hasattr(array, "__cuda_array_interface__")


def test_pytorch_shares_the_memory_both_ways():
    torch = pytest.importorskip("torch")
    array = sixes()
    tensor = torch.from_dlpack(array)
    tensor[1, 2] = 9
    assert array.asnumpy()[1, 2] == 9
    back = ndarray.from_dlpack(torch.ones(2, 2))
    assert back.asnumpy().tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("dtype", sorted(each.name for each in dtypes.C_NAMES))
def test_every_dtype_passes_both_ways(dtype):
    dtype = dtypes.checked(dtype)
    values = np.arange(6).reshape(2, 3).astype(dtype)
    array = ndarray.array(values, dtype=dtype)
    assert np.asarray(array).dtype == dtype
    np.testing.assert_array_equal(np.asarray(array), values)
    again = ndarray.from_dlpack(array)
    assert again.dtype == dtype
    assert again.handle.contents.data == array.handle.contents.data
    np.testing.assert_array_equal(again.asnumpy(), values)


def test_rows_and_other_shapes_are_views():
    array = ndarray.array(np.arange(24).reshape(4, 6), dtype=np.int64)
    rows, row = array[1:3], array[-1]
    assert (rows.shape, row.shape, len(rows)) == ((2, 6), (6,), 2)
    assert rows.asnumpy().tolist() == np.arange(6, 18).reshape(2, 6).tolist()
    rows[:] = np.zeros((2, 6), np.int64)
    assert array.asnumpy()[1:3].tolist() == np.zeros((2, 6)).tolist()
    assert array.reshape(2, -1).shape == array.reshape((2, 12)).shape == (2, 12)
    assert array.reshape(24)[5:7].asnumpy().tolist() == [5, 0]
    assert array[7:].shape == (0, 6)
    for wrong, error in ((4, IndexError), (slice(0, 4, 2), TypeError), ("a", TypeError)):
        with pytest.raises(error):
            array[wrong]
    with pytest.raises(ValueError, match="reshape"):
        array.reshape(5)
