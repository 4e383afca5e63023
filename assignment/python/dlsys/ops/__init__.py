"""The full set of operations on nodes, and numpy's operators for these.

    from dlsys import ops
    loss = ops.cross_entropy(ops.relu(x @ w1) @ w2, labels)

Nodes have their operators from the import of this package on. Where the classic ops of autodiff.py
say the same, these are they.
"""

from dlsys.autodiff import add_op as add
from dlsys.autodiff import gradients as gradients
from dlsys.autodiff import mul_op as multiply
from dlsys.autodiff import oneslike_op as ones_like
from dlsys.autodiff import relu_op as relu
from dlsys.autodiff import zeroslike_op as zeros_like

from . import operators
from .activation import erf_op as erf
from .activation import gelu_op as gelu
from .activation import leaky_relu_op as leaky_relu
from .activation import log_softmax_op as log_softmax
from .activation import sigmoid_op as sigmoid
from .activation import silu_op as silu
from .activation import softmax_along_op as softmax
from .activation import softplus_op as softplus
from .base import as_node as as_node
from .base import constant_op as constant
from .casting import cast_like_op as cast_like
from .casting import cast_op as cast
from .convolution import conv2d_op as conv2d
from .convolution import convolution_op as convolution
from .elementwise import abs_op as abs
from .elementwise import clip_op as clip
from .elementwise import divide_op as divide
from .elementwise import equal_op as equal
from .elementwise import exp_op as exp
from .elementwise import greater_equal_op as greater_equal
from .elementwise import greater_op as greater
from .elementwise import less_equal_op as less_equal
from .elementwise import less_op as less
from .elementwise import log1p_op as log1p
from .elementwise import log_op as log
from .elementwise import logical_and_op as logical_and
from .elementwise import logical_not_op as logical_not
from .elementwise import logical_or_op as logical_or
from .elementwise import logical_xor_op as logical_xor
from .elementwise import maximum_op as maximum
from .elementwise import minimum_op as minimum
from .elementwise import negate_op as negate
from .elementwise import not_equal_op as not_equal
from .elementwise import power_op as power
from .elementwise import rsqrt_op as rsqrt
from .elementwise import sign_op as sign
from .elementwise import sqrt_op as sqrt
from .elementwise import square_op as square
from .elementwise import subtract_op as subtract
from .elementwise import tanh_op as tanh
from .elementwise import where_op as where
from .flow import stop_gradient_op as stop_gradient
from .indexing import embedding_op as embedding
from .indexing import gather_op as gather
from .indexing import one_hot_op as one_hot
from .indexing import scatter_add_op as scatter_add
from .known import variable as variable
from .linear import product_op as matmul
from .loss import cross_entropy_op as cross_entropy
from .loss import mse_op as mse
from .loss import nll_op as nll
from .movement import broadcast_shape_op as broadcast_to
from .movement import concatenate_op as concatenate
from .movement import expand_dims_op as expand_dims
from .movement import flatten_op as flatten
from .movement import flip_op as flip
from .movement import pad_op as pad
from .movement import reshape_op as reshape
from .movement import split_op as split
from .movement import squeeze_op as squeeze
from .movement import stack_op as stack
from .movement import transpose_op as transpose
from .pooling import average_pool_op as average_pool
from .pooling import global_average_pool_op as global_average_pool
from .pooling import max_pool_op as max_pool
from .random import bernoulli_op as bernoulli
from .random import dropout_op as dropout
from .random import normal_op as normal
from .random import uniform_op as uniform
from .reduction import argmax_op as argmax
from .reduction import argmin_op as argmin
from .reduction import logsumexp_op as logsumexp
from .reduction import max_op as max
from .reduction import mean_op as mean
from .reduction import min_op as min
from .reduction import prod_op as prod
from .reduction import sum_op as sum
from .reduction import variance_op as variance
from .transforms import checkpoint_op as checkpoint
from .transforms import hessian_vector_product as hessian_vector_product
from .transforms import jacobian as jacobian
from .transforms import value_and_grad as value_and_grad

operators.install()
