"""Ways in which students write the tasks on their own, and the habits that they write them in."""

from __future__ import annotations

import random
import re

#: What renaming leaves alone: words of C++ and CUDA, and what the kit's headers give.
CUDA_WORDS = frozenset(
    """
    auto bool break case char const constexpr continue default do double else enum extern false
    float for if inline int int32_t int64_t long namespace new nullptr return short signed sizeof
    static static_cast std struct switch template true typedef unsigned using void volatile while
    size_t __global__ __device__ __shared__ __restrict__ __syncthreads __syncwarp __shfl_xor_sync
    __shfl_down_sync __shfl_sync threadIdx blockIdx blockDim gridDim x y z dim3 expf logf fmaxf max
    min atomicAdd INFINITY FLT_MAX warpSize shape ndim data_of size_of shape_of same_shape
    blocks_for launched REQUIRE define C include
    """.split()
)

_ELEMENTWISE = {
    "2.3": ("array_set", "", "float value", "value", "value"),
    "2.4": ("broadcast_to", "const float* in", "int64_t size", "in[{i} % size]", "data_of(input), size"),
    "2.6": ("add", "const float* a, const float* b", "", "a[{i}] + b[{i}]", "data_of(matA), data_of(matB)"),
    "2.7": ("add_const", "const float* in", "float c", "in[{i}] + c", "data_of(input), val"),
    "2.8": ("mul", "const float* a, const float* b", "", "a[{i}] * b[{i}]", "data_of(matA), data_of(matB)"),
    "2.9": ("mul_const", "const float* in", "float c", "in[{i}] * c", "data_of(input), val"),
    "2.11": ("relu", "const float* in", "", "{relu}", "data_of(input)"),
    "2.12": ("relu_grad", "const float* in, const float* g", "", "{relu_grad}", "data_of(input), data_of(in_grad)"),
}  # fmt: skip

_REDUCE = (
    """
__global__ void sum0(const float* in, float* out, int64_t rows, int64_t cols) {
  {type} c = {thread};
  if (c >= cols) return;
  float s = 0;
  for ({type} r = 0; r < rows; ++r) s += in[r * cols + c];
  out[c] = s;
}
""",
    """
__global__ void sum_columns(int64_t cols, int64_t rows, const float* src, float* dst) {
  __shared__ float buf[256];
  int col = blockIdx.x;
  float acc = 0.0f;
  for ({type} r = threadIdx.x; r < rows; r += blockDim.x) {
    acc += src[r * cols + col];
  }
  buf[threadIdx.x] = acc;
  __syncthreads();
  for (int k = 128; k > 0; k >>= 1) {
    if (threadIdx.x < k) buf[threadIdx.x] += buf[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) dst[col] = buf[0];
}
""",
    """
__global__ void clear(float* p, {type} n) {
  {type} at = {thread};
  if (at < n) p[at] = 0.f;
}

__global__ void add_rows(const float* x, {type} total, {type} width, float* y) {
  {type} at = {thread};
  if (at < total) {
    atomicAdd(&y[at % width], x[at]);
  }
}
""",
    """
__global__ void column_sum(const float* a, float* b, {type} h, {type} w) {
  {type} step = gridDim.x * blockDim.x;
  for ({type} j = {thread}; j < w; j += step) {
    const float* p = a + j;
    float t = *p;
    for ({type} i = 1; i < h; i++) {
      p += w;
      t = t + *p;
    }
    b[j] = t;
  }
}
""",
)
_REDUCE_LAUNCH = (
    "  sum0<<<{blocks:cols}, {threads}>>>(data_of(input), data_of(output), rows, columns);",
    "  if (columns > 0)\n    sum_columns<<<columns, 256>>>(columns, rows, data_of(input), data_of(output));",
    "  clear<<<{blocks:columns}, {threads}>>>(data_of(output), columns);\n"
    "  add_rows<<<{blocks:rows * columns}, {threads}>>>(data_of(input), rows * columns, columns, data_of(output));",
    "  column_sum<<<64, 128>>>(data_of(input), data_of(output), rows, columns);",
)  # fmt: skip

_MATMUL = (
    """
__global__ void gemm(const float* A, const float* B, float* C, int m, int n, int k, bool ta, bool tb) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m && col < n) {
    float acc = 0;
    for (int p = 0; p < k; ++p) {
      float a = ta ? A[p * m + row] : A[row * k + p];
      float b = tb ? B[col * k + p] : B[p * n + col];
      acc += a * b;
    }
    C[row * n + col] = acc;
  }
}
""",
    """
#define TS 16
__global__ void tiled(float* C, const float* A, const float* B, int M, int N, int K, int ta, int tb) {
  __shared__ float As[TS][TS];
  __shared__ float Bs[TS][TS];
  int tx = threadIdx.x, ty = threadIdx.y;
  int r = blockIdx.y * TS + ty;
  int c = blockIdx.x * TS + tx;
  float result = 0.0f;
  for (int t = 0; t < (K + TS - 1) / TS; t++) {
    int ka = t * TS + tx;
    int kb = t * TS + ty;
    if (r < M && ka < K)
      As[ty][tx] = ta ? A[ka * M + r] : A[r * K + ka];
    else
      As[ty][tx] = 0.0f;
    if (kb < K && c < N)
      Bs[ty][tx] = tb ? B[c * K + kb] : B[kb * N + c];
    else
      Bs[ty][tx] = 0.0f;
    __syncthreads();
    for (int e = 0; e < TS; e++) {
      result += As[ty][e] * Bs[e][tx];
    }
    __syncthreads();
  }
  if (r < M && c < N) C[r * N + c] = result;
}
""",
    """
__device__ float at(const float* X, bool t, {type} i, {type} j, {type} rows, {type} cols) {
  if (i >= rows || j >= cols) return 0;
  return X[t ? j * rows + i : i * cols + j];
}

__global__ void product(const float* A, bool ta, const float* B, bool tb, {type} M, {type} N, {type} K, float* C) {
  {type} id = {thread};
  if (id >= M * N) return;
  {type} y = id / N;
  {type} x = id - y * N;
  double sum = 0;
  {type} k = 0;
  while (k < K) {
    sum += at(A, ta, y, k, M, K) * at(B, tb, k, x, K, N);
    k++;
  }
  C[id] = sum;
}
""",
    "",
)
_MATMUL_LAUNCH = (
    """
  dim3 threads(16, 16);
  dim3 blocks((N + 15) / 16, (M + 15) / 16);
  gemm<<<blocks, threads>>>(data_of(matA), data_of(matB), data_of(matC), M, N, K, transposeA, transposeB);
  return launched("matrix_multiply");
""",
    """
  if (M == 0 || N == 0) return 0;
  dim3 grid((N + TS - 1) / TS, (M + TS - 1) / TS);
  tiled<<<grid, dim3(TS, TS)>>>(data_of(matC), data_of(matA), data_of(matB), M, N, K, transposeA ? 1 : 0, transposeB ? 1 : 0);
  return launched("matrix_multiply");
""",
    """
  {type} total = M * N;
  if (total > 0)
    product<<<{blocks:total}, {threads}>>>(data_of(matA), transposeA, data_of(matB), transposeB, M, N, K, data_of(matC));
  return launched("matmul");
""",
    """
  cublasHandle_t handle;
  cublasCreate(&handle);
  const float one = 1.0f, zero = 0.0f;
  cublasSgemm(handle, transposeB ? CUBLAS_OP_T : CUBLAS_OP_N, transposeA ? CUBLAS_OP_T : CUBLAS_OP_N,
              N, M, K, &one, data_of(matB), matB->shape[1], data_of(matA), matA->shape[1], &zero,
              data_of(matC), N);
  cublasDestroy(handle);
  return launched("matmul");
""",
)  # fmt: skip

_SOFTMAX = (
    """
__global__ void softmax_rows(const float* in, float* out, {type} rows, {type} cols) {
  {type} r = {thread};
  if (r < rows) {
    float m = in[r * cols];
    for ({type} c = 0; c < cols; c++) {
      if (in[r * cols + c] > m) m = in[r * cols + c];
    }
    float total = 0.0f;
    for ({type} c = 0; c < cols; c++) {
      out[r * cols + c] = expf(in[r * cols + c] - m);
      total += out[r * cols + c];
    }
    for ({type} c = 0; c < cols; c++) out[r * cols + c] /= total;
  }
}
""",
    """
__global__ void softmax_block(int nrow, int ncol, const float* input, float* output) {
  extern __shared__ float cache[];
  int y = blockIdx.x;
  input += y * ncol;
  output += y * ncol;
  float best = -INFINITY;
  for (int x = threadIdx.x; x < ncol; x += blockDim.x) best = fmaxf(best, input[x]);
  cache[threadIdx.x] = best;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) cache[threadIdx.x] = fmaxf(cache[threadIdx.x], cache[threadIdx.x + s]);
    __syncthreads();
  }
  best = cache[0];
  __syncthreads();
  float part = 0;
  for (int x = threadIdx.x; x < ncol; x += blockDim.x) part += expf(input[x] - best);
  cache[threadIdx.x] = part;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) cache[threadIdx.x] += cache[threadIdx.x + s];
    __syncthreads();
  }
  for (int x = threadIdx.x; x < ncol; x += blockDim.x) output[x] = expf(input[x] - best) / cache[0];
}
""",
    """
__global__ void warp_softmax(const float* z, float* p, {type} n, {type} d) {
  int lane = threadIdx.x & 31;
  {type} row = ({thread}) >> 5;
  if (row >= n) return;
  float hi = -FLT_MAX;
  for (int j = lane; j < d; j += 32) hi = max(hi, z[row * d + j]);
  for (int o = 16; o; o >>= 1) hi = max(hi, __shfl_down_sync(~0u, hi, o));
  hi = __shfl_sync(~0u, hi, 0);
  float sum = 0;
  for (int j = lane; j < d; j += 32) {
    float e = expf(z[row * d + j] - hi);
    p[row * d + j] = e;
    sum += e;
  }
  for (int o = 16; o; o >>= 1) sum += __shfl_down_sync(~0u, sum, o);
  float scale = 1.0f / __shfl_sync(~0u, sum, 0);
  for (int j = lane; j < d; j += 32) p[row * d + j] *= scale;
}
""",
)
_SOFTMAX_LAUNCH = (
    "  softmax_rows<<<{blocks:input->shape[0]}, {threads}>>>(data_of(input), data_of(output), input->shape[0], input->shape[1]);",
    "  int nrow = input->shape[0], ncol = input->shape[1];\n"
    "  if (nrow * ncol > 0) softmax_block<<<nrow, 128, 128 * sizeof(float)>>>(nrow, ncol, data_of(input), data_of(output));",
    "  {type} n = input->shape[0], d = input->shape[1];\n  warp_softmax<<<{blocks:32 * n}, {threads}>>>(data_of(input), data_of(output), n, d);",
)  # fmt: skip

_TOPO = (
    """
if node in visited:
    return
visited.add(node)
for child in node.inputs:
    topo_sort_dfs(child, visited, topo_order)
topo_order.append(node)
""",
    """
todo = [(node, False)]
while todo:
    current, expanded = todo.pop()
    if expanded:
        topo_order.append(current)
        continue
    if current in visited:
        continue
    visited.add(current)
    todo.append((current, True))
    for parent in reversed(current.inputs):
        if parent not in visited:
            todo.append((parent, False))
""",
    """
if node not in visited:
    path = [node]
    while len(path) > 0:
        top = path[-1]
        visited.add(top)
        waiting = [p for p in top.inputs if p not in visited]
        if waiting:
            path.append(waiting[0])
        else:
            path.pop()
            if top not in topo_order:
                topo_order.append(top)
""",
)
_GRADIENTS = (
    """
node_to_grads = {}
node_to_grads[output_node] = [oneslike_op(output_node)]
node_to_grad = {}
order = reversed(find_topo_sort([output_node]))
for node in order:
    grad = sum_node_list(node_to_grads[node])
    node_to_grad[node] = grad
    input_grads = node.op.gradient(node, grad)
    for i in range(len(node.inputs)):
        if node.inputs[i] not in node_to_grads:
            node_to_grads[node.inputs[i]] = []
        node_to_grads[node.inputs[i]].append(input_grads[i])
return [node_to_grad[node] for node in node_list]
""",
    """
total = {output_node: oneslike_op(output_node)}
for current in find_topo_sort([output_node])[::-1]:
    if current.op is placeholder_op:
        continue
    parts = current.op.gradient(current, total[current])
    for source, part in zip(current.inputs, parts):
        total[source] = total[source] + part if source in total else part
return list(map(total.__getitem__, node_list))
""",
    """
pending = defaultdict(list)
pending[output_node] += [oneslike_op(output_node)]
done = dict()
ordered = find_topo_sort([output_node])
while ordered:
    n = ordered.pop()
    done[n] = sum_node_list(pending.pop(n))
    contribution = n.op.gradient(n, done[n])
    if contribution is None:
        continue
    for k, inp in enumerate(n.inputs):
        pending[inp].append(contribution[k])
result = []
for wanted in node_list:
    result.append(done[wanted])
return result
""",
)
_PLAN = (
    """
self.node_to_arr_map = {}
for node in self.topo_order:
    if node not in feed_shapes:
        self.node_to_arr_map[node] = ndarray.empty(self.node_to_shape_map[node], self.ctx)
""",
    """
counts = {}
for node in self.topo_order:
    for i in node.inputs:
        counts[i] = counts.get(i, 0) + 1
free = {}
plan = {}
for node in self.topo_order:
    if node in feed_shapes:
        continue
    shape = self.node_to_shape_map[node]
    if node not in self.eval_node_list and free.get(shape):
        plan[node] = free[shape].pop()
    else:
        plan[node] = ndarray.empty(shape, ctx=self.ctx)
    for i in node.inputs:
        counts[i] -= 1
        if counts[i] == 0 and i in plan and i not in self.eval_node_list:
            free.setdefault(self.node_to_shape_map[i], []).append(plan[i])
self.node_to_arr_map = plan
""",
    """
last = {n: k for k, node in enumerate(self.topo_order) for n in node.inputs}
keep = set(self.eval_node_list)
spare = []
arrays = {}
storage = {}
for step, node in enumerate(self.topo_order):
    need = int(np.prod(self.node_to_shape_map[node]))
    if node not in feed_shapes:
        block = None
        if node not in keep:
            for candidate in sorted(spare, key=lambda s: s.shape[0]):
                if candidate.shape[0] >= need:
                    block = candidate
                    spare.remove(candidate)
                    break
        if block is None:
            block = ndarray.empty((need,), self.ctx)
        storage[node] = block
        arrays[node] = ndarray.view(block, self.node_to_shape_map[node])
    for old in set(node.inputs):
        if last.get(old) == step and old in storage and old not in keep:
            spare.append(storage.pop(old))
self.node_to_arr_map = arrays
""",
)
_MATMUL_GRADIENT = (
    """
A, B = node.inputs
if not node.matmul_attr_trans_A and not node.matmul_attr_trans_B:
    return [matmul_op(output_grad, B, False, True), matmul_op(A, output_grad, True, False)]
if node.matmul_attr_trans_A and not node.matmul_attr_trans_B:
    return [matmul_op(B, output_grad, False, True), matmul_op(A, output_grad, False, False)]
if not node.matmul_attr_trans_A and node.matmul_attr_trans_B:
    return [matmul_op(output_grad, B, False, False), matmul_op(output_grad, A, True, False)]
return [matmul_op(B, output_grad, True, True), matmul_op(output_grad, A, True, True)]
""",
    """
ta = node.matmul_attr_trans_A
tb = node.matmul_attr_trans_B
left = node.inputs[0]
right = node.inputs[1]
dl = matmul_op(right, output_grad, tb, True) if ta else matmul_op(output_grad, right, trans_B=not tb)
dr = matmul_op(output_grad, left, True, ta) if tb else matmul_op(left, output_grad, trans_A=not ta)
return [dl, dr]
""",
    """
first, second = node.inputs
flags = (bool(node.matmul_attr_trans_A), bool(node.matmul_attr_trans_B))
cases = {
    (False, False): ((output_grad, second, False, True), (first, output_grad, True, False)),
    (True, False): ((second, output_grad, False, True), (first, output_grad, False, False)),
    (False, True): ((output_grad, second, False, False), (output_grad, first, True, False)),
    (True, True): ((second, output_grad, True, True), (output_grad, first, True, True)),
}
return [matmul_op(*arguments) for arguments in cases[flags]]
""",
)
_MATMUL_SHAPE = (
    """
a, b = input_shapes
rows = a[1] if node.matmul_attr_trans_A else a[0]
cols = b[0] if node.matmul_attr_trans_B else b[1]
k1 = a[0] if node.matmul_attr_trans_A else a[1]
k2 = b[1] if node.matmul_attr_trans_B else b[0]
if k1 != k2:
    raise ValueError("inner sizes differ: %d and %d" % (k1, k2))
return (rows, cols)
""",
    """
left = list(input_shapes[0])
right = list(input_shapes[1])
if len(left) != 2 or len(right) != 2:
    raise ValueError("matmul takes matrices")
if node.matmul_attr_trans_A:
    left.reverse()
if node.matmul_attr_trans_B:
    right.reverse()
if left[1] != right[0]:
    raise ValueError("matmul: %s x %s" % (left, right))
return left[0], right[1]
""",
    """
for s in input_shapes:
    if len(s) != 2:
        raise ValueError(f"not a matrix: {s}")
i, j = int(node.matmul_attr_trans_A), 1 - int(node.matmul_attr_trans_B)
m, k = input_shapes[0][i], input_shapes[0][1 - i]
n, other = input_shapes[1][j], input_shapes[1][1 - j]
if other != k:
    raise ValueError(f"{input_shapes[0]} and {input_shapes[1]} do not fit")
return (m, n)
""",
)
_SHORT = {
    ("1.2", 0): ("return [unbroadcast_op(output_grad, node.inputs[0]), unbroadcast_op(output_grad, node.inputs[1])]",
                 "A, B = node.inputs\nreturn [unbroadcast_op(output_grad, A), unbroadcast_op(output_grad, B)]",
                 "return [unbroadcast_op(output_grad, x) for x in node.inputs]"),
    ("1.2", 1): ("return [output_grad]",),
    ("1.2", 2): ("a, b = node.inputs\nreturn [unbroadcast_op(output_grad * b, a), unbroadcast_op(output_grad * a, b)]",
                 "ga = mul_op(node.inputs[1], output_grad)\ngb = mul_op(node.inputs[0], output_grad)\n"
                 "return [unbroadcast_op(ga, node.inputs[0]), unbroadcast_op(gb, node.inputs[1])]"),
    ("1.2", 3): ("return [output_grad * node.const_attr]", "return [mul_byconst_op(output_grad, node.const_attr)]"),
    ("1.4", 0): ("return [broadcastto_op(output_grad, node.inputs[0])]", "x = node.inputs[0]\nreturn [broadcastto_op(output_grad, x)]"),
    ("1.4", 1): ("return [unbroadcast_op(output_grad, node.inputs[0]), zeroslike_op(node.inputs[1])]",
                 "a, b = node.inputs\nga = unbroadcast_op(output_grad, a)\nreturn [ga, zeroslike_op(b)]"),
    ("1.5", 0): ("y, t = node.inputs\ng = (softmax_op(y) + (-1) * t) * output_grad\nreturn [dividebyrows_op(g), zeroslike_op(t)]",
                 "p = softmax_op(node.inputs[0])\ndiff = add_op(p, mul_byconst_op(node.inputs[1], -1))\n"
                 "scaled = dividebyrows_op(diff)\nreturn [mul_op(scaled, output_grad), zeroslike_op(node.inputs[1])]"),
    ("1.5", 1): ("return [relu_gradient_op(node.inputs[0], output_grad)]", "x = node.inputs[0]\nreturn [relu_gradient_op(x, output_grad)]"),
    ("2.1", 0): ("return broadcast_rule(input_shapes[0], input_shapes[1])", "a, b = input_shapes\nreturn broadcast_rule(a, b)"),
    ("2.1", 7): ("if len(input_shapes[0]) == 1:\n    return (1,)\nreturn input_shapes[0][1:]",
                 "shape = tuple(input_shapes[0][1:])\nreturn shape if shape else (1,)"),
    ("2.1", 8): ("return broadcast_rule(input_shapes[0], input_shapes[1])", "return input_shapes[1]",
                 "a, b = input_shapes\nif broadcast_rule(a, b) != b:\n    raise ValueError(\"%s %s\" % (a, b))\nreturn b"),
    ("2.1", 9): ("if input_shapes[0] != input_shapes[1]:\n    raise ValueError(\"shapes differ\")\nreturn (1,)",
                 "a, b = input_shapes\nif a != b or len(a) != 2:\n    raise ValueError(\"bad shapes %s %s\" % (a, b))\nreturn (1,)"),
    ("2.1", 13): ("self.node_to_shape_map = {}\nfor node in self.topo_order:\n    if node in feed_shapes:\n"
                  "        self.node_to_shape_map[node] = feed_shapes[node]\n    else:\n"
                  "        shapes = [self.node_to_shape_map[i] for i in node.inputs]\n"
                  "        self.node_to_shape_map[node] = node.op.infer_shape(node, shapes)",
                  "known = dict(feed_shapes)\nfor n in self.topo_order:\n    if n in known:\n        continue\n"
                  "    known[n] = n.op.infer_shape(n, list(map(known.get, n.inputs)))\nself.node_to_shape_map = known"),
}  # fmt: skip


class Habit:
    """One student: chooses a way for each task, and keeps to habits in small things."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.type = chance.choice(("int", "int64_t", "long", "size_t"))
        self.thread = chance.choice((
            "blockIdx.x * blockDim.x + threadIdx.x", "threadIdx.x + blockIdx.x * blockDim.x",
            "element_index()", "blockDim.x * blockIdx.x + threadIdx.x",
            "static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x",
        ))  # fmt: skip
        self.threads = chance.choice(("kThreads", "256", "128", "512"))
        self.blocks = chance.choice((
            "blocks_for({n}, {t})", "({n} + {t} - 1) / {t}", "({n} - 1) / {t} + 1",
            "(int)ceil({n} / (float){t})",
        ))  # fmt: skip
        self.body = chance.choice(("if", "return", "braces", "stride"))
        self.launch = chance.randrange(5)
        self.relu = chance.choice(("in[{i}] > 0 ? in[{i}] : 0", "in[{i}] < 0 ? 0 : in[{i}]",
                                   "fmaxf(in[{i}], 0.0f)", "in[{i}] * (in[{i}] > 0)"))  # fmt: skip
        self.relu_grad = chance.choice(("in[{i}] > 0 ? g[{i}] : 0", "(in[{i}] > 0) * g[{i}]",
                                        "in[{i}] <= 0.0f ? 0.0f : g[{i}]"))  # fmt: skip
        self.out_first = chance.random() < 0.5
        self.way = {task: chance.random() for task in ("2.5", "2.10", "2.13")}
        self.swaps = [swap for swap in SWAPS if chance.random() < 0.4]

    def write(self, task: str, number: int) -> str:
        """The code for hole `number` of a task."""
        code = self._code(task, number)
        for pattern, replacement, share in self.swaps:
            code = re.sub(
                pattern,
                lambda m, r=replacement, s=share: m.expand(r) if self.chance.random() < s else m[0],
                code,
            )
        return code

    def _code(self, task: str, number: int) -> str:
        if task in _ELEMENTWISE:
            return self._launcher(task) if number else self._kernel(task)
        ways = {
            "1.1": _TOPO, "1.3": _MATMUL_GRADIENT, "1.6": _GRADIENTS,
            "2.5": (_REDUCE, _REDUCE_LAUNCH), "2.10": (_MATMUL, _MATMUL_LAUNCH),
            "2.13": (_SOFTMAX, _SOFTMAX_LAUNCH),
        }.get(task)  # fmt: skip
        if task in self.way:
            some = ways[number]
            code = self._spelt(some[int(self.way[task] * len(some))])
            return code if not number or "return launched" in code else code + '\n  return launched("it");'
        if task == "2.2":
            return self.chance.choice(_PLAN) if number else ""
        if task == "2.1" and number == 4:
            return self.chance.choice(_MATMUL_SHAPE)
        if task == "2.1" and (task, number) not in _SHORT:
            return self.chance.choice(_SHORT["2.1", 0] if number == 2 else ("return input_shapes[0]",))
        return self.chance.choice(ways or _SHORT[task, number])

    def _spelt(self, code: str) -> str:
        code = code.replace("{type}", self.type).replace("{thread}", self.thread)
        code = re.sub(r"\{blocks:(.*?)\}", lambda m: self._blocks(m[1]), code)
        return code.replace("{threads}", self.threads)

    def _blocks(self, count: str) -> str:
        return self.blocks.replace("{n}", count).replace("{t}", self.threads)

    def _kernel(self, task: str) -> str:
        name, arrays, scalars, value, _ = _ELEMENTWISE[task]
        value = value.replace("{relu}", self.relu).replace("{relu_grad}", self.relu_grad)
        value = value.replace("{i}", "i")
        heads = [f"{self.type} n", arrays, "float* out"]
        if self.out_first:
            heads = ["float* out", arrays, f"{self.type} n"]
        head = ", ".join(part for part in (*heads, scalars) if part)
        index = f"{self.type} i = {self.thread};"
        bodies = {
            "if": f"  {index}\n  if (i < n) out[i] = {value};\n",
            "return": f"  {index}\n  if (i >= n) return;\n  out[i] = {value};\n",
            "braces": f"  const {index}\n  if (n > i) {{\n    out[i] = {value};\n  }}\n",
            "stride": f"  {self.type} step = blockDim.x * gridDim.x;\n"
            f"  for ({index[:-1]}; i < n; i += step) {{\n    out[i] = {value};\n  }}\n",
        }
        return f"__global__ void {name}_kernel({head}) {{\n{bodies[self.body]}}}\n"

    def _launcher(self, task: str) -> str:
        name, _, scalars, _, arguments = _ELEMENTWISE[task]
        out = "arr" if task == "2.3" else "output"
        arrays = [a for a in arguments.split(", ") if a.startswith("data_of")]
        rest = [a for a in arguments.split(", ") if not a.startswith("data_of")]
        order = [f"data_of({out})", *arrays, "n", *rest] if self.out_first else ["n", *arrays, f"data_of({out})", *rest]
        call = f"{name}_kernel<<<{self._blocks('n')}, {self.threads}>>>({', '.join(order)});"
        size = "int64_t size = size_of(input);\n" if task == "2.4" else ""
        lines = (
            f"int64_t n = size_of({out});\nif (n == 0) return 0;\n{call}\nreturn launched(\"{name}\");",
            f"{self.type} n = 1;\nfor (int d = 0; d < {out}->ndim; d++) n *= {out}->shape[d];\nif (n > 0) {{\n  {call}\n}}\n"
            f"return launched(\"{name}\");",
            f"auto n = size_of({out});\nif (!n) {{\n  return 0;\n}}\n{call}\nreturn launched(\"{name}\");",
            f"const {self.type} n = size_of({out});\nint blocks = {self._blocks('n')};\nif (blocks < 1) return 0;\n"
            + re.sub(r"<<<.*?, (\w+)>>>", r"<<<blocks, \1>>>", call) + f"\nreturn launched(\"{name}\");",
            f"int64_t n = size_of({out});\ndim3 block({self.threads});\ndim3 grid({self._blocks('n')});\nif (n > 0) "
            + re.sub(r"<<<.*>>>", "<<<grid, block>>>", call) + f"\nreturn launched(\"{name}\");",
        )  # fmt: skip
        return size + lines[self.launch]


#: Small things that can be written in two ways: (what, how else, at how many of the places).
SWAPS = (
    (r"\+\+(\w+)\)", r"\1++)", 1.0),
    (r"(\w+)\+\+\)", r"\1 += 1)", 1.0),
    (r"(?m)^( *)(\w+) \+= (.*);$", r"\1\2 = \2 + \3;", 0.7),
    (r"(?m)^( *)return \[(\w+) for (\w+) in (\w+)\]$",
     r"\1answer = [\2 for \3 in \4]\n\1return answer", 0.8),
    (r"(\w+)\[node\]", r"\1.get(node)", 0.2),
    (r"if (\w+) not in (\w+):", r"if not \1 in \2:", 0.6),
    (r"(?m)^( *)for (\w+) in (self\.topo_order|node\.inputs):$", r"\1for \2 in list(\3):", 0.4),
    (r"(\w+) < (rows|cols|n|N|K)\b", r"\2 > \1", 0.5),
    (r"float (\w+) = 0;", r"float \1 = 0, unused = 1;", 0.3),
    (r"(\w+) \* (cols|w|N|K|d) \+ (\w+)\]", r"\3 + \2 * \1]", 0.6),
    (r"expf\((.*?) - (\w+)\)", r"expf(-\2 + \1)", 0.5),
)  # fmt: skip
