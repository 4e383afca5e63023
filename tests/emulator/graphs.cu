// Graphs: capture of streams, nodes by hand, launches, and memory of graphs.
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "check.h"

__global__ void add(float* data, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] += value;
}

__global__ void combine(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * a[i] + b[i];
}

struct Scale {
  float factor, shift;
};
__global__ void scale(float* data, Scale by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = data[i] * by.factor + by.shift;
}

template <typename T>
__global__ void fill(T* data, T value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = value;
}

static const int kCount = 300, kBlock = 128, kGrid = (kCount + kBlock - 1) / kBlock;
static const size_t kBytes = kCount * sizeof(float);

#define OK(call) CHECK((call) == cudaSuccess)

static cudaStream_t make_stream() {
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

static void begin(cudaStream_t stream) {
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
}

static cudaGraphExec_t end_and_instantiate(cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphDestroy(graph));
  return exec;
}

static void launch_and_destroy(cudaGraphExec_t exec, cudaStream_t stream, int times = 1) {
  for (int i = 0; i < times; ++i) OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  OK(cudaGraphExecDestroy(exec));
}

static bool all_are(const Device<float>& data, float value) {
  for (float each : data.get())
    if (each != value) return false;
  return true;
}

static size_t nodes_of(cudaGraph_t graph) {
  size_t count = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &count));
  return count;
}

static size_t edges_of(cudaGraph_t graph) {
  size_t count = 0;
  OK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  return count;
}

CASE(captured_work_runs_when_the_graph_is_launched) {
  Device<float> data(std::vector<float>(kCount, 1));
  cudaStream_t stream = make_stream();
  begin(stream);
  add<<<kGrid, kBlock, 0, stream>>>(data.data, 2, kCount);
  add<<<kGrid, kBlock, 0, stream>>>(data.data, 3, kCount);
  OK(cudaGetLastError());
  cudaGraphExec_t exec = end_and_instantiate(stream);
  CHECK(all_are(data, 1));
  OK(cudaGraphUpload(exec, stream));
  launch_and_destroy(exec, stream, 3);
  CHECK(all_are(data, 16));
  OK(cudaStreamDestroy(stream));
}

CASE(arguments_are_those_of_the_capture) {
  Device<float> data(std::vector<float>(kCount, 1));
  cudaStream_t stream = make_stream();
  float value = 5;
  Scale by = {2, 1};
  int count = kCount;
  float* pointer = data.data;
  void* arguments[] = {&pointer, &value, &count};
  begin(stream);
  OK(cudaLaunchKernel((void*)add, dim3(kGrid), dim3(kBlock), arguments, 0, stream));
  scale<<<kGrid, kBlock, 0, stream>>>(data.data, by, count);
  cudaGraphExec_t exec = end_and_instantiate(stream);
  value = 100;
  by = {0, 0};
  count = 0;
  pointer = nullptr;
  launch_and_destroy(exec, stream);
  CHECK(all_are(data, 13));
}

CASE(copies_fills_and_host_functions_are_captured) {
  Device<float> a(std::vector<float>(kCount, 1)), b(std::vector<float>(kCount, 2));
  float *from, *to;
  OK(cudaMallocHost(&from, kBytes));
  OK(cudaMallocHost(&to, kBytes));
  for (int i = 0; i < kCount; ++i) from[i] = 7, to[i] = 0;
  int calls = 0;
  cudaStream_t stream = make_stream();
  begin(stream);
  OK(cudaMemcpyAsync(a.data, from, kBytes, cudaMemcpyHostToDevice, stream));
  OK(cudaMemsetAsync(b.data, 0, kBytes, stream));
  add<<<kGrid, kBlock, 0, stream>>>(b.data, 1, kCount);
  combine<<<kGrid, kBlock, 0, stream>>>(a.data, b.data, a.data, kCount);
  OK(cudaMemcpyAsync(to, a.data, kBytes, cudaMemcpyDeviceToHost, stream));
  OK(cudaLaunchHostFunc(stream, [](void* data) { ++*static_cast<int*>(data); }, &calls));
  cudaGraph_t graph;
  OK(cudaStreamEndCapture(stream, &graph));
  CHECK(calls == 0 && to[0] == 0);
  std::vector<cudaGraphNode_t> nodes(nodes_of(graph));
  size_t count = nodes.size();
  OK(cudaGraphGetNodes(graph, nodes.data(), &count));
  CHECK(count == 6 && edges_of(graph) == 5);
  std::map<int, int> types;
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    OK(cudaGraphNodeGetType(node, &type));
    ++types[type];
  }
  CHECK(types[cudaGraphNodeTypeKernel] == 2 && types[cudaGraphNodeTypeMemcpy] == 2);
  CHECK(types[cudaGraphNodeTypeMemset] == 1 && types[cudaGraphNodeTypeHost] == 1);
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  OK(cudaGraphDestroy(graph));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(calls == 1 && to[0] == 15 && to[kCount - 1] == 15);
  from[3] = 8;  // a copy reads when the graph runs
  launch_and_destroy(exec, stream);
  CHECK(calls == 2 && to[3] == 17);
  OK(cudaFreeHost(from));
  OK(cudaFreeHost(to));
}

CASE(events_fork_and_join) {
  Device<float> a(std::vector<float>(kCount, 1)), b(std::vector<float>(kCount, 1)), c(kCount);
  cudaStream_t first = make_stream(), second = make_stream();
  cudaEvent_t fork, join;
  OK(cudaEventCreate(&fork));
  OK(cudaEventCreate(&join));
  begin(first);
  add<<<kGrid, kBlock, 0, first>>>(a.data, 1, kCount);
  OK(cudaEventRecord(fork, first));
  OK(cudaStreamWaitEvent(second, fork, 0));
  cudaStreamCaptureStatus status;
  OK(cudaStreamIsCapturing(second, &status));
  CHECK(status == cudaStreamCaptureStatusActive);
  add<<<kGrid, kBlock, 0, second>>>(b.data, 5, kCount);
  add<<<kGrid, kBlock, 0, first>>>(a.data, 1, kCount);
  OK(cudaEventRecord(join, second));
  OK(cudaStreamWaitEvent(first, join, 0));
  combine<<<kGrid, kBlock, 0, first>>>(a.data, b.data, c.data, kCount);
  cudaGraph_t graph;
  OK(cudaStreamEndCapture(first, &graph));
  OK(cudaStreamIsCapturing(second, &status));
  CHECK(status == cudaStreamCaptureStatusNone);
  size_t roots = 0, edges = 4;
  cudaGraphNode_t from[4], to[4];
  OK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  OK(cudaGraphGetEdges(graph, from, to, nullptr, &edges));
  CHECK(nodes_of(graph) == 4 && roots == 1 && edges == 4);
  OK(cudaGraphNodeGetDependentNodes(from[0], nullptr, nullptr, &edges));
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphDestroy(graph));
  launch_and_destroy(exec, first, 2);
  CHECK(all_are(c, 2 * 5 + 11));
  OK(cudaEventDestroy(fork));
  OK(cudaEventDestroy(join));
}

CASE(what_a_stream_captures_can_be_asked) {
  Device<float> data(kCount);
  cudaStream_t stream = make_stream();
  cudaStreamCaptureStatus status;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr, ended;
  const cudaGraphNode_t* nodes = nullptr;
  size_t count = 7;
  OK(cudaStreamGetCaptureInfo(stream, &status));
  CHECK(status == cudaStreamCaptureStatusNone);
  begin(stream);
  OK(cudaMemsetAsync(data.data, 0, kBytes, stream));
  OK(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, nullptr, &count));
  CHECK(status == cudaStreamCaptureStatusActive && id != 0 && count == 1);
  cudaGraphNodeType type;
  OK(cudaGraphNodeGetType(nodes[0], &type));
  CHECK(type == cudaGraphNodeTypeMemset);
  OK(cudaStreamEndCapture(stream, &ended));
  CHECK(ended == graph && nodes_of(graph) == 1);
  OK(cudaGraphDestroy(graph));
}

CASE(nodes_by_hand) {
  Device<float> a(kCount), b(std::vector<float>(kCount, 3)), c(kCount);
  std::vector<float> result(kCount);
  cudaGraph_t graph;
  OK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t set, added, combined, copied, empty, called;
  cudaMemsetParams zero = {};
  zero.dst = a.data, zero.elementSize = 4, zero.width = kCount, zero.height = 1;
  OK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &zero));
  float value = 4;
  int count = kCount;
  void* add_arguments[] = {&a.data, &value, &count};
  cudaKernelNodeParams kernel = {};
  kernel.func = (void*)add;
  kernel.gridDim = dim3(kGrid), kernel.blockDim = dim3(kBlock);
  kernel.kernelParams = add_arguments;
  OK(cudaGraphAddKernelNode(&added, graph, &set, 1, &kernel));
  void* combine_arguments[] = {&a.data, &b.data, &c.data, &count};
  kernel.func = reinterpret_cast<void*>(combine);
  kernel.kernelParams = combine_arguments;
  OK(cudaGraphAddKernelNode(&combined, graph, nullptr, 0, &kernel));
  OK(cudaGraphAddEmptyNode(&empty, graph, &added, 1));
  OK(cudaGraphAddDependencies(graph, &empty, &combined, nullptr, 1));
  OK(cudaGraphAddMemcpyNode1D(&copied, graph, &combined, 1, result.data(), c.data, kBytes,
                              cudaMemcpyDeviceToHost));
  int calls = 0;
  cudaHostNodeParams host = {[](void* data) { ++*static_cast<int*>(data); }, &calls};
  OK(cudaGraphAddHostNode(&called, graph, &copied, 1, &host));
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  cudaStream_t stream = make_stream();
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(calls == 1 && result[0] == 11 && result[kCount - 1] == 11);
  // Another value, in the graph that was instantiated alone.
  value = 10;
  cudaKernelNodeParams other = {};
  OK(cudaGraphKernelNodeGetParams(added, &other));
  CHECK(other.gridDim.x == unsigned(kGrid) && *static_cast<float*>(other.kernelParams[1]) == 4);
  kernel.func = (void*)add;
  kernel.kernelParams = add_arguments;
  OK(cudaGraphExecKernelNodeSetParams(exec, added, &kernel));
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(result[5] == 23);
  size_t before = 0;
  OK(cudaGraphNodeGetDependencies(combined, nullptr, nullptr, &before));
  CHECK(before == 1);
  OK(cudaGraphRemoveDependencies(graph, &empty, &combined, nullptr, 1));
  OK(cudaGraphNodeGetDependencies(combined, nullptr, nullptr, &before));
  CHECK(before == 0);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
}

CASE(kernels_of_templates_are_nodes) {
  Device<float> data(kCount);
  float value = 6, *pointer = data.data;
  int count = kCount;
  void* arguments[] = {&pointer, &value, &count};
  cudaKernelNodeParams kernel = {(void*)fill<float>, dim3(kGrid), dim3(kBlock), 0,
                                 arguments,          nullptr};
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t exec;
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &kernel));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphDestroy(graph));
  launch_and_destroy(exec, 0);
  CHECK(all_are(data, 6));
}

CASE(circles_are_refused) {
  cudaGraph_t graph;
  cudaGraphNode_t a, b;
  cudaGraphExec_t exec = nullptr;
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphAddEmptyNode(&a, graph, nullptr, 0));
  OK(cudaGraphAddEmptyNode(&b, graph, &a, 1));
  if (cudaGraphAddDependencies(graph, &b, &a, nullptr, 1) == cudaSuccess)
    CHECK(cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess);
  cudaGetLastError();
  OK(cudaGraphDestroy(graph));
}

CASE(clones_and_child_graphs) {
  Device<float> data(std::vector<float>(kCount, 0));
  cudaStream_t stream = make_stream();
  cudaGraph_t inner, outer, clone;
  begin(stream);
  add<<<kGrid, kBlock, 0, stream>>>(data.data, 1, kCount);
  add<<<kGrid, kBlock, 0, stream>>>(data.data, 1, kCount);
  OK(cudaStreamEndCapture(stream, &inner));
  OK(cudaGraphCreate(&outer, 0));
  cudaGraphNode_t first, second, found;
  OK(cudaGraphAddChildGraphNode(&first, outer, nullptr, 0, inner));
  OK(cudaGraphAddChildGraphNode(&second, outer, &first, 1, inner));
  OK(cudaGraphDestroy(inner));
  OK(cudaGraphClone(&clone, outer));
  OK(cudaGraphNodeFindInClone(&found, second, clone));
  cudaGraphNodeType type;
  OK(cudaGraphNodeGetType(found, &type));
  CHECK(type == cudaGraphNodeTypeGraph);
  OK(cudaGraphDestroy(outer));
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, clone, 0));
  OK(cudaGraphDestroy(clone));
  launch_and_destroy(exec, stream, 2);
  CHECK(all_are(data, 8));
}

CASE(a_graph_launched_in_a_capture_is_a_node) {
  Device<float> data(std::vector<float>(kCount, 0));
  cudaStream_t stream = make_stream();
  begin(stream);
  add<<<kGrid, kBlock, 0, stream>>>(data.data, 1, kCount);
  cudaGraphExec_t inner = end_and_instantiate(stream);
  begin(stream);
  add<<<kGrid, kBlock, 0, stream>>>(data.data, 10, kCount);
  OK(cudaGraphLaunch(inner, stream));
  cudaGraphExec_t outer = end_and_instantiate(stream);
  CHECK(all_are(data, 0));
  launch_and_destroy(outer, stream, 2);
  CHECK(all_are(data, 22));
  OK(cudaGraphExecDestroy(inner));
}

static cudaGraph_t captured(cudaStream_t stream, Device<float>& data, float value, int kernels) {
  cudaGraph_t graph;
  begin(stream);
  for (int i = 0; i < kernels; ++i) add<<<kGrid, kBlock, 0, stream>>>(data.data, value, kCount);
  OK(cudaStreamEndCapture(stream, &graph));
  return graph;
}

CASE(an_update_changes_values_and_no_shape) {
  Device<float> data(std::vector<float>(kCount, 0));
  cudaStream_t stream = make_stream();
  cudaGraph_t graph = captured(stream, data, 1, 2), same = captured(stream, data, 5, 2),
              longer = captured(stream, data, 5, 3);
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  cudaGraphExecUpdateResultInfo info;
  OK(cudaGraphExecUpdate(exec, same, &info));
  CHECK(info.result == cudaGraphExecUpdateSuccess);
  CHECK(cudaGraphExecUpdate(exec, longer, &info) == cudaErrorGraphExecUpdateFailure);
  CHECK(info.result == cudaGraphExecUpdateErrorTopologyChanged);
  CHECK(cudaGetLastError() == cudaErrorGraphExecUpdateFailure);
  launch_and_destroy(exec, stream);
  CHECK(all_are(data, 10));
  for (cudaGraph_t each : {graph, same, longer}) OK(cudaGraphDestroy(each));
}

CASE(memory_of_a_graph_has_one_address) {
  Device<float> in(std::vector<float>(kCount, 3)), out(kCount);
  cudaStream_t stream = make_stream();
  float* buffer = nullptr;
  begin(stream);
  OK(cudaMallocAsync(&buffer, kBytes, stream));
  fill<<<kGrid, kBlock, 0, stream>>>(buffer, 4.0f, kCount);
  combine<<<kGrid, kBlock, 0, stream>>>(in.data, buffer, out.data, kCount);
  OK(cudaFreeAsync(buffer, stream));
  cudaGraphExec_t exec = end_and_instantiate(stream);
  CHECK(buffer != nullptr);
  launch_and_destroy(exec, stream, 3);
  CHECK(all_are(out, 10));
}

CASE(memory_of_a_graph_outlives_a_launch) {
  cudaStream_t stream = make_stream();
  float* buffer = nullptr;
  std::vector<float> result(kCount);
  begin(stream);
  OK(cudaMallocAsync(&buffer, kBytes, stream));
  fill<<<kGrid, kBlock, 0, stream>>>(buffer, 4.0f, kCount);
  cudaGraphExec_t exec = end_and_instantiate(stream);
  for (int turn = 0; turn < 2; ++turn) {
    OK(cudaGraphLaunch(exec, stream));
    add<<<kGrid, kBlock, 0, stream>>>(buffer, 1, kCount);
    OK(cudaMemcpyAsync(result.data(), buffer, kBytes, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(result[0] == 5 && result[kCount - 1] == 5);
    CHECK(cudaGraphLaunch(exec, stream) == cudaErrorInvalidValue);  // it was not freed
    cudaGetLastError();
    OK(cudaFreeAsync(buffer, stream));
  }
  OK(cudaStreamSynchronize(stream));
  OK(cudaGraphExecDestroy(exec));
}

CASE(memory_is_freed_by_the_next_launch) {
  cudaStream_t stream = make_stream();
  float* buffer = nullptr;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  begin(stream);
  OK(cudaMallocAsync(&buffer, kBytes, stream));
  fill<<<kGrid, kBlock, 0, stream>>>(buffer, 4.0f, kCount);
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  OK(cudaGraphDestroy(graph));
  for (int i = 0; i < 3; ++i) OK(cudaGraphLaunch(exec, stream));
  OK(cudaFreeAsync(buffer, stream));
  OK(cudaStreamSynchronize(stream));
  OK(cudaGraphExecDestroy(exec));
}

CASE(events_in_graphs_keep_the_time_if_they_are_external) {
  Device<float> data(std::vector<float>(kCount, 0));
  cudaStream_t stream = make_stream();
  cudaEvent_t start, stop;
  OK(cudaEventCreate(&start));
  OK(cudaEventCreate(&stop));
  begin(stream);
  OK(cudaEventRecordWithFlags(start, stream, cudaEventRecordExternal));
  add<<<kGrid, kBlock, 0, stream>>>(data.data, 1, kCount);
  OK(cudaEventRecordWithFlags(stop, stream, cudaEventRecordExternal));
  cudaGraph_t graph;
  OK(cudaStreamEndCapture(stream, &graph));
  CHECK(nodes_of(graph) == 3);
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphDestroy(graph));
  float milliseconds = -1;
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaEventSynchronize(stop));
  OK(cudaEventElapsedTime(&milliseconds, start, stop));
  CHECK(milliseconds >= 0);
  OK(cudaGraphExecDestroy(exec));
}

CASE(a_graph_is_drawn) {
  Device<float> data(kCount);
  cudaStream_t stream = make_stream();
  cudaGraph_t graph = captured(stream, data, 1, 2);
  const char* path = std::getenv("GRAPH_DOT");
  OK(cudaGraphDebugDotPrint(graph, path != nullptr ? path : "/dev/null", 0));
  OK(cudaGraphDestroy(graph));
}

CASE(two_threads_capture_at_once) {
  auto work = [](float value, bool* holds) {
    Device<float>* data = new Device<float>(std::vector<float>(kCount, 0));
    cudaStream_t stream = make_stream();
    for (int turn = 0; turn < 20; ++turn) {
      begin(stream);
      add<<<kGrid, kBlock, 0, stream>>>(data->data, value, kCount);
      launch_and_destroy(end_and_instantiate(stream), stream, 2);
    }
    std::vector<float> values(kCount);
    OK(cudaMemcpyAsync(values.data(), data->data, kBytes, cudaMemcpyDeviceToHost, stream));
    OK(cudaStreamSynchronize(stream));
    *holds = values[0] == 40 * value && values[kCount - 1] == 40 * value;
  };
  bool first = false, second = false;
  std::thread other(work, 2.0f, &second);
  work(1.0f, &first);
  other.join();
  CHECK(first && second);
}

CASE(a_step_into_a_graph_that_is_there) {
  Device<float> data(std::vector<float>(kCount, 0));
  cudaStream_t stream = make_stream();
  cudaGraph_t graph = captured(stream, data, 1, 1), same;
  cudaGraphNode_t node;
  size_t count = 1;
  OK(cudaGraphGetNodes(graph, &node, &count));
  OK(cudaStreamBeginCaptureToGraph(stream, graph, &node, nullptr, 1, cudaStreamCaptureModeRelaxed));
  scale<<<kGrid, kBlock, 0, stream>>>(data.data, {10, 0}, kCount);
  OK(cudaStreamEndCapture(stream, &same));
  CHECK(same == graph && nodes_of(graph) == 2 && edges_of(graph) == 1);
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphDestroy(graph));
  launch_and_destroy(exec, stream, 2);
  CHECK(all_are(data, 110));
}

CASE(pools_count_what_they_keep) {
  cudaStream_t stream = make_stream();
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  cudaMemPool_t pool;
  OK(cudaMemPoolCreate(&pool, &properties));
  uint64_t threshold = UINT64_MAX, value = 0;
  OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  void *a, *b;
  const size_t size = size_t(1) << 20;
  OK(cudaMallocFromPoolAsync(&a, size, pool, stream));
  OK(cudaMallocFromPoolAsync(&b, size, pool, stream));
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
  CHECK(value == 2 * size);
  OK(cudaFreeAsync(a, stream));
  OK(cudaFreeAsync(b, stream));
  OK(cudaStreamSynchronize(stream));
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
  CHECK(value == 0);
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &value));
  CHECK(value >= 2 * size);
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &value));
  CHECK(value == 2 * size);
  OK(cudaMemPoolTrimTo(pool, 0));
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &value));
  CHECK(value == 0);
  OK(cudaMemPoolDestroy(pool));
}
