"""The emulated GPU's cuBLAS against numpy."""

import ctypes

import numpy as np
import pytest

import kit as emulator_kit


class Cuda:
    """The emulated runtime and cuBLAS, called from Python."""

    NOT_INITIALIZED, INVALID_VALUE, EXECUTION_FAILED = 1, 7, 13
    ILLEGAL_ADDRESS = 700

    def __init__(self, path):
        self.lib = ctypes.CDLL(str(path))
        self.handle = ctypes.c_void_p()
        assert self.lib.cublasCreate(ctypes.byref(self.handle)) == 0

    def upload(self, array):
        """A copy of an array in device memory, stored by columns."""
        array = np.asfortranarray(array)
        ptr = ctypes.c_void_p()
        assert self.lib.cudaMalloc(ctypes.byref(ptr), ctypes.c_size_t(array.nbytes)) == 0
        host = ctypes.c_void_p(array.ctypes.data)
        assert self.lib.cudaMemcpy(ptr, host, ctypes.c_size_t(array.nbytes), 1) == 0
        return ptr

    def download(self, ptr, like):
        """The array in device memory, of the shape and type of another."""
        out = np.empty_like(np.asfortranarray(like))
        host = ctypes.c_void_p(out.ctypes.data)
        assert self.lib.cudaMemcpy(host, ptr, ctypes.c_size_t(out.nbytes), 2) == 0
        return out

    def gemm(self, name, op_a, op_b, a, b, c, alpha, beta):
        """alpha op(a) op(b) + beta c"""
        scalar = ctypes.c_float if a.dtype == np.float32 else ctypes.c_double
        m, n = c.shape
        k = a.shape[0] if op_a else a.shape[1]
        ptrs = [self.upload(x) for x in (a, b, c)]
        alpha, beta = scalar(alpha), scalar(beta)
        status = getattr(self.lib, name)(
            self.handle, op_a, op_b, m, n, k, ctypes.byref(alpha), ptrs[0], a.shape[0],
            ptrs[1], b.shape[0], ctypes.byref(beta), ptrs[2], m,
        )  # fmt: skip
        assert status == 0
        out = self.download(ptrs[2], c)
        for ptr in ptrs:
            assert self.lib.cudaFree(ptr) == 0
        return out


@pytest.fixture(scope="session")
def cuda(kit):
    """The library, loaded here."""
    if emulator_kit.RUNNER:
        pytest.skip("the library is another CPU's, and this Python cannot load it")
    return Cuda(kit.library)


@pytest.mark.parametrize("name, dtype", [("cublasSgemm", "f4"), ("cublasDgemm", "f8")])
@pytest.mark.parametrize("op_a", [0, 1])
@pytest.mark.parametrize("op_b", [0, 1])
@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (33, 127, 65), (300, 600, 128)])
def test_gemm_agrees_with_numpy(cuda, name, dtype, op_a, op_b, m, n, k):
    rng = np.random.default_rng(m * 8 + op_a * 2 + op_b)
    a = rng.standard_normal((k, m) if op_a else (m, k)).astype(dtype)
    b = rng.standard_normal((n, k) if op_b else (k, n)).astype(dtype)
    c = rng.standard_normal((m, n)).astype(dtype)
    wanted = 2.0 * (a.T if op_a else a).astype("f8") @ (b.T if op_b else b).astype("f8") - c
    got = cuda.gemm(name, op_a, op_b, a, b, c, 2.0, -1.0)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=np.finfo(dtype).eps * 8 * k)


def test_gemm_with_beta_0_does_not_read_c(cuda):
    a = np.ones((5, 4), "f4")
    got = cuda.gemm("cublasSgemm", 0, 0, a, a.T.copy(), np.full((5, 5), np.nan, "f4"), 1.0, 0.0)
    np.testing.assert_array_equal(got, np.full((5, 5), 4))


def test_vectors_agree_with_numpy(cuda):
    x = np.random.default_rng(0).standard_normal(1025).astype("f4")
    y = np.arange(1025, dtype="f4")
    dx, dy, alpha, out = cuda.upload(x), cuda.upload(y), ctypes.c_float(2), ctypes.c_float()
    lib, handle = cuda.lib, cuda.handle
    assert lib.cublasSdot(handle, 1025, dx, 1, dy, 1, ctypes.byref(out)) == 0
    assert out.value == pytest.approx(float(x.astype("f8") @ y), rel=1e-4)
    assert lib.cublasSasum(handle, 1025, dx, 1, ctypes.byref(out)) == 0
    assert out.value == pytest.approx(float(np.abs(x).sum()), rel=1e-5)
    assert lib.cublasSnrm2(handle, 1025, dx, 1, ctypes.byref(out)) == 0
    assert out.value == pytest.approx(float(np.linalg.norm(x)), rel=1e-5)
    index = ctypes.c_int()
    assert lib.cublasIsamax(handle, 1025, dx, 1, ctypes.byref(index)) == 0
    assert index.value == np.abs(x).argmax() + 1
    assert lib.cublasSaxpy(handle, 1025, ctypes.byref(alpha), dx, 1, dy, 1) == 0
    assert lib.cublasSscal(handle, 1025, ctypes.byref(alpha), dx, 1) == 0
    np.testing.assert_allclose(cuda.download(dy, y), 2 * x + y, rtol=1e-6)
    np.testing.assert_array_equal(cuda.download(dx, x), 2 * x)


def test_geam_transposes(cuda):
    a = np.arange(12, dtype="f4").reshape(3, 4)
    da, dc = cuda.upload(a), cuda.upload(np.zeros((4, 3), "f4"))
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    status = cuda.lib.cublasSgeam(cuda.handle, 1, 0, 4, 3, ctypes.byref(one), da, 3,
                                  ctypes.byref(zero), None, 4, dc, 4)  # fmt: skip
    assert status == 0
    np.testing.assert_array_equal(cuda.download(dc, np.zeros((4, 3), "f4")), a.T)


def test_rank_one_updates_and_products_with_a_vector_agree_with_numpy(cuda):
    rng = np.random.default_rng(1)
    a, x, y = (rng.standard_normal(shape).astype("f4") for shape in ((33, 31), 33, 31))
    da, dx, dy = cuda.upload(a), cuda.upload(x), cuda.upload(y)
    two = ctypes.c_float(2)
    assert cuda.lib.cublasSger(cuda.handle, 33, 31, ctypes.byref(two), dx, 1, dy, 1, da, 33) == 0
    a = a + 2 * np.outer(x, y)
    np.testing.assert_allclose(cuda.download(da, a), a, rtol=1e-5, atol=1e-5)
    x = gemv(cuda, 0, a, da, dx, dy, 2 * (a @ y) + 3 * x)
    gemv(cuda, 1, a, da, dy, dx, 2 * (a.T @ x) + 3 * y)


def gemv(cuda, op, a, da, out, vector, wanted):
    """2 op(a) vector + 3 out, which must be as wanted."""
    two, three = ctypes.c_float(2), ctypes.c_float(3)
    status = cuda.lib.cublasSgemv(cuda.handle, op, *a.shape, ctypes.byref(two), da, a.shape[0],
                                  vector, 1, ctypes.byref(three), out, 1)  # fmt: skip
    assert status == 0
    got = cuda.download(out, wanted)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-3)
    return got


def test_batches_of_products_agree_with_numpy(cuda):
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((3, 5, 4)).astype("f4"), rng.standard_normal((3, 7, 5)).astype("f4")
    wanted = b @ a  # by rows; by columns A B of 4 x 5 and 5 x 7
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    da, db = cuda.upload(a.ravel()), cuda.upload(b.ravel())
    dc = cuda.upload(np.zeros(3 * 28, "f4"))
    step = ctypes.c_longlong
    status = cuda.lib.cublasSgemmStridedBatched(
        cuda.handle, 0, 0, 4, 7, 5, ctypes.byref(one), da, 4, step(20), db, 5, step(35),
        ctypes.byref(zero), dc, 4, step(28), 3)  # fmt: skip
    assert status == 0
    got = cuda.download(dc, np.zeros(84, "f4")).reshape(3, 7, 4)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    arrays = [
        cuda.upload(np.array([ptr.value + i * size * 4 for i in (2, 1, 0)], "u8"))
        for ptr, size in ((da, 20), (db, 35), (dc, 28))
    ]
    status = cuda.lib.cublasSgemmBatched(
        cuda.handle, 0, 0, 4, 7, 5, ctypes.byref(one), arrays[0], 4, arrays[1], 5,
        ctypes.byref(one), arrays[2], 4, 3)  # fmt: skip
    assert status == 0
    got = cuda.download(dc, np.zeros(84, "f4")).reshape(3, 7, 4)
    np.testing.assert_allclose(got, 2 * wanted, rtol=1e-5, atol=1e-5)


def test_vectors_are_copied_swapped_and_moved(cuda):
    x, y = np.arange(33, dtype="f4"), np.full(33, 5, "f4")
    dx, dy, lib = cuda.upload(x), cuda.upload(y), cuda.lib
    assert lib.cublasSswap(cuda.handle, 33, dx, 1, dy, 1) == 0
    np.testing.assert_array_equal(cuda.download(dx, x), y)
    assert lib.cublasScopy(cuda.handle, 11, dy, 3, dx, 1) == 0
    np.testing.assert_array_equal(cuda.download(dx, x)[:11], x[::3])
    out = np.zeros((4, 3), "f4", order="F")
    host = ctypes.c_void_p(out.ctypes.data)
    assert lib.cublasGetMatrix(3, 3, 4, dy, 5, host, 4) == 0
    np.testing.assert_array_equal(out[:3].T, [[0, 1, 2], [5, 6, 7], [10, 11, 12]])
    assert lib.cublasSetVector(3, 4, host, 4, dx, 2) == 0
    np.testing.assert_array_equal(cuda.download(dx, x)[:6:2], [0, 5, 10])
    assert lib.cublasSetMatrix(5, 3, 4, host, 4, dx, 5) == cuda.INVALID_VALUE


def sgemm(cuda, handle, a, lda, m=4):
    """The status of a product of 4 x 4 matrices."""
    one = ctypes.c_float(1)
    good = cuda.upload(np.ones((4, 4), "f4"))
    return cuda.lib.cublasSgemm(handle, 0, 0, m, 4, 4, ctypes.byref(one), a, lda, good, 4,
                                ctypes.byref(one), good, 4)  # fmt: skip


def test_bad_arguments_of_cublas_are_refused(cuda):
    a = cuda.upload(np.ones((4, 4), "f4"))
    assert sgemm(cuda, cuda.handle, a, 4) == 0
    assert sgemm(cuda, cuda.handle, a, 3) == cuda.INVALID_VALUE
    assert sgemm(cuda, cuda.handle, a, 4, m=-1) == cuda.INVALID_VALUE
    assert sgemm(cuda, None, a, 4) == cuda.NOT_INITIALIZED


def test_handles_are_counted_and_dead_ones_are_noticed(cuda):
    live = cuda.lib.emulator_cublas_handles_live
    before, handle = live(), ctypes.c_void_p()
    assert cuda.lib.cublasCreate(ctypes.byref(handle)) == 0
    assert live() == before + 1
    assert cuda.lib.cublasDestroy(handle) == 0
    assert live() == before
    assert cuda.lib.cublasDestroy(handle) == cuda.NOT_INITIALIZED
    assert sgemm(cuda, handle, None, 4) == cuda.NOT_INITIALIZED


@pytest.mark.parametrize("wrong", ["host", "short"])
def test_a_matrix_outside_of_device_memory_is_an_illegal_address(cuda, wrong):
    host = np.ones((4, 4), "f4")
    short = cuda.upload(np.ones((4, 3), "f4"))
    a = ctypes.c_void_p(host.ctypes.data) if wrong == "host" else short
    try:
        assert sgemm(cuda, cuda.handle, a, 4) == cuda.EXECUTION_FAILED
        assert cuda.lib.cudaGetLastError() == cuda.ILLEGAL_ADDRESS
    finally:
        cuda.lib.cudaDeviceReset()
