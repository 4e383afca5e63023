"""The GPU kernels as Python functions. Outputs are allocated by the caller and overwritten."""

import ctypes
import functools

from ._base import _LIB, DeviceError, check_call
from .ndarray import NDArray


def _launch(function, *args):
    """Calls a C function, then asks the device whether the launch was accepted.

    NDArrays pass as their handles. Kernels run asynchronously: an error inside one shows up
    at the next call that waits for the device.
    """
    try:
        launcher = getattr(_LIB, function)
    except AttributeError:
        raise DeviceError("src/gpu_op.cu defines no %s" % function) from None
    check_call(launcher(*[_c_value(arg) for arg in args]))
    check_call(_LIB.DLDeviceCheck(function.encode()))


def _c_value(arg):
    """What ctypes passes for an argument.

    Raises:
        TypeError: it is an array of another dtype than float32.
    """
    if isinstance(arg, NDArray) and arg.dtype != "float32":
        raise TypeError("the kernels of gpu_op.cu take float32, not %r; hint: dlsys.ops" % arg)
    return ctypes.c_float(arg) if isinstance(arg, float) else getattr(arg, "handle", arg)


def __getattr__(name):
    """A launcher of src/ that has no function here: gpu_op.scale is DLGpuScale.

    It takes NDArrays, floats and bools, and what else C asks for as a value of ctypes.
    """
    function = "DLGpu" + "".join(word.capitalize() for word in name.split("_"))
    if name.startswith("_") or not hasattr(_LIB, function):
        raise AttributeError("gpu_op has no %s, and src/gpu_op.cu no %s" % (name, function))
    return functools.partial(_launch, function)


def array_set(arr, value):
    """Fills arr, of any rank, with value."""
    assert isinstance(arr, NDArray)
    _launch("DLGpuArraySet", arr, ctypes.c_float(value))


def broadcast_to(in_arr, out_arr):
    """Tiles in_arr k times along a new axis 0: out_arr.shape == (k,) + in_arr.shape."""
    assert isinstance(in_arr, NDArray)
    assert isinstance(out_arr, NDArray)
    _launch("DLGpuBroadcastTo", in_arr, out_arr)


def reduce_sum_axis_zero(in_arr, out_arr):
    """Sums over axis 0: out_arr.shape == in_arr.shape[1:]; a vector sums to shape (1,)."""
    assert isinstance(in_arr, NDArray)
    assert isinstance(out_arr, NDArray)
    _launch("DLGpuReduceSumAxisZero", in_arr, out_arr)


def matrix_elementwise_add(matA, matB, matC):
    """matC = matA + matB, all of one shape, any rank. matC may be matA or matB."""
    assert isinstance(matA, NDArray)
    assert isinstance(matB, NDArray)
    assert isinstance(matC, NDArray)
    _launch("DLGpuMatrixElementwiseAdd", matA, matB, matC)


def matrix_elementwise_add_by_const(in_mat, val, out_mat):
    """out_mat = in_mat + val. out_mat may be in_mat."""
    assert isinstance(in_mat, NDArray)
    assert isinstance(out_mat, NDArray)
    _launch("DLGpuMatrixElementwiseAddByConst", in_mat, ctypes.c_float(val), out_mat)


def matrix_elementwise_multiply(matA, matB, matC):
    """matC = matA * matB element by element, all of one shape. matC may be matA or matB."""
    assert isinstance(matA, NDArray)
    assert isinstance(matB, NDArray)
    assert isinstance(matC, NDArray)
    _launch("DLGpuMatrixElementwiseMultiply", matA, matB, matC)


def matrix_elementwise_multiply_by_const(in_mat, val, out_mat):
    """out_mat = val * in_mat. out_mat may be in_mat."""
    assert isinstance(in_mat, NDArray)
    assert isinstance(out_mat, NDArray)
    _launch("DLGpuMatrixMultiplyByConst", in_mat, ctypes.c_float(val), out_mat)


def matrix_multiply(matA, transA, matB, transB, matC):
    """matC = op(matA) @ op(matB), row-major, 2-D; op transposes where its flag is True."""
    assert isinstance(matA, NDArray)
    assert isinstance(matB, NDArray)
    assert isinstance(matC, NDArray)
    _launch("DLGpuMatrixMultiply", matA, transA, matB, transB, matC)


def relu(in_arr, out_arr):
    """out_arr = max(in_arr, 0). out_arr may be in_arr."""
    assert isinstance(in_arr, NDArray)
    assert isinstance(out_arr, NDArray)
    _launch("DLGpuRelu", in_arr, out_arr)


def relu_gradient(in_arr, in_grad_arr, out_arr):
    """out_arr = in_grad_arr where in_arr > 0, else 0. out_arr may be either input."""
    assert isinstance(in_arr, NDArray)
    assert isinstance(in_grad_arr, NDArray)
    assert isinstance(out_arr, NDArray)
    _launch("DLGpuReluGradient", in_arr, in_grad_arr, out_arr)


def softmax(in_arr, out_arr):
    """Softmax of every row of a 2-D array, the row's maximum subtracted first."""
    assert isinstance(in_arr, NDArray)
    assert isinstance(out_arr, NDArray)
    _launch("DLGpuSoftmax", in_arr, out_arr)


def softmax_cross_entropy(in_arr_a, in_arr_b, out_arr):
    """out_arr, of shape (1,), = mean over rows of -sum(in_arr_b * log(softmax(in_arr_a)))."""
    assert isinstance(in_arr_a, NDArray)
    assert isinstance(in_arr_b, NDArray)
    assert isinstance(out_arr, NDArray)
    _launch("DLGpuSoftmaxCrossEntropy", in_arr_a, in_arr_b, out_arr)
