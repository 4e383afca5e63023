/*!
 * \file graph_nodes.cc
 * \brief Nodes that the program makes by hand, and those of memory.
 */
#include "graph_nodes.h"

#include "arena.h"
#include "capture.h"
#include "copy.h"
#include "error.h"
#include "fault.h"
#include "graph_plan.h"
#include "kernel_call.h"
#include "stream.h"

namespace emulator {

NodeWork work_of_kernel(std::shared_ptr<const KernelCall> call) {
  NodeWork work;
  work.type = cudaGraphNodeTypeKernel;
  work.label = call->site().name;
  work.function = call->code();
  work.kernel = call;
  work.run = [call](cudaStream_t stream) { return call->run(stream); };
  return work;
}

NodeWork work_of_host(cudaHostFn_t function, void* data) {
  NodeWork work;
  work.type = cudaGraphNodeTypeHost;
  work.label = "host function";
  work.run = [function, data](cudaStream_t stream) { return call_now(stream, function, data); };
  return work;
}

NodeWork work_of_allocation(std::shared_ptr<GraphMemory> memory) {
  NodeWork work;
  work.type = cudaGraphNodeTypeMemAlloc;
  work.label = "allocate " + std::to_string(memory->size()) + " bytes";
  work.memory = memory;
  work.run = [memory](cudaStream_t) { return memory->allocate(); };
  return work;
}

NodeWork work_of_free(std::shared_ptr<GraphMemory> memory) {
  NodeWork work;
  work.type = cudaGraphNodeTypeMemFree;
  work.label = "free " + std::to_string(memory->size()) + " bytes";
  work.memory = memory;
  work.run = [memory](cudaStream_t) { return memory->free(); };
  return work;
}

cudaError_t make_kernel_work(const cudaKernelNodeParams* params, const char* file, int line,
                             NodeWork* work) {
  if (params == nullptr || params->func == nullptr) return cudaErrorInvalidValue;
  if (params->extra != nullptr) return cudaErrorNotSupported;
  const auto call = make_kernel_call(*params, file == nullptr ? "a graph's node" : file, line);
  if (call == nullptr) return cudaErrorInvalidDeviceFunction;
  const cudaError_t error = check_launch(call->site(), call->config());
  if (error == cudaSuccess) *work = work_of_kernel(call);
  return error;
}

cudaError_t make_copy_work(void* to, const void* from, size_t size, cudaMemcpyKind kind,
                           NodeWork* work) {
  const cudaError_t error = size == 0 ? cudaErrorInvalidValue : check_copy(to, from, size, kind);
  work->type = cudaGraphNodeTypeMemcpy;
  work->label = "memcpy " + std::to_string(size) + " bytes";
  work->run = [=](cudaStream_t stream) { return copy_now(to, from, size, kind, stream); };
  return error;
}

cudaError_t make_fill_work(const cudaMemsetParams* params, NodeWork* work) {
  if (params == nullptr) return cudaErrorInvalidValue;
  const cudaMemsetParams fill = *params;
  work->type = cudaGraphNodeTypeMemset;
  work->label = "memset " + std::to_string(fill.width * fill.elementSize * fill.height) + " bytes";
  work->run = [fill](cudaStream_t stream) { return fill_now(fill, stream); };
  return check_fill(fill);
}

cudaError_t make_host_work(const cudaHostNodeParams* params, NodeWork* work) {
  if (params == nullptr || params->fn == nullptr) return cudaErrorInvalidValue;
  *work = work_of_host(params->fn, params->userData);
  return cudaSuccess;
}

namespace {

// Puts work into a graph; `error` is what was wrong with it.
cudaError_t put(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                size_t count, const NodeWork& work, cudaError_t error = cudaSuccess) {
  if (error != cudaSuccess) return error;
  std::lock_guard<std::recursive_mutex> lock(graphs_mutex());
  if (node == nullptr || !is_graph(graph) || (dependencies == nullptr && count > 0))
    return cudaErrorInvalidValue;
  const cudaGraphNode_t made = add_node(graph, dependencies, count, work);
  if (made == nullptr) return cudaErrorInvalidValue;
  *node = made;
  return cudaSuccess;
}

cudaError_t change(cudaGraphNode_t node, const NodeWork& work, cudaError_t error) {
  if (error != cudaSuccess) return error;
  std::lock_guard<std::recursive_mutex> lock(graphs_mutex());
  if (!is_node(node) || node->work->type != work.type) return cudaErrorInvalidValue;
  node->work = std::make_shared<const NodeWork>(work);
  return cudaSuccess;
}

}  // namespace
}  // namespace emulator

using emulator::NodeWork;
using emulator::report;
typedef std::lock_guard<std::recursive_mutex> Lock;

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                  const cudaGraphNode_t* dependencies, size_t count) {
  EMULATOR_RETURN_IF_STICKY();
  NodeWork work;
  work.label = "empty";
  return report(emulator::put(node, graph, dependencies, count, work));
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaKernelNodeParams* params, const char* file, int line) {
  EMULATOR_HOST_CALL_OF("cudaGraphAddKernelNode");
  if (emulator::sticky_error() != cudaSuccess) return emulator::sticky_error();
  NodeWork work;
  const cudaError_t error = emulator::make_kernel_work(params, file, line, &work);
  return report(emulator::put(node, graph, dependencies, count, work, error));
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* params) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  if (params == nullptr || !emulator::is_node(node) || node->work->kernel == nullptr)
    return report(cudaErrorInvalidValue);
  const emulator::KernelCall& call = *node->work->kernel;
  // What a stream captured knows its arguments as bytes alone.
  if (call.given.kernel == nullptr) return report(cudaErrorNotSupported);
  const emulator::Config& config = call.config();
  *params = {const_cast<void*>(call.given.kernel),
             config.grid,
             config.block,
             static_cast<unsigned>(config.shared),
             const_cast<void**>(call.given.arguments.data()),
             nullptr};
  return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* params) {
  EMULATOR_RETURN_IF_STICKY();
  NodeWork work;
  const cudaError_t error = emulator::make_kernel_work(params, nullptr, 0, &work);
  return report(emulator::change(node, work, error));
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaMemcpy3DParms* copy) {
  EMULATOR_RETURN_IF_STICKY();
  if (copy == nullptr) return report(cudaErrorInvalidValue);
  const cudaMemcpy3DParms box = *copy;
  NodeWork work;
  work.type = cudaGraphNodeTypeMemcpy;
  work.label = "memcpy of a box";
  work.run = [box](cudaStream_t stream) { return emulator::copy_box_now(box, stream); };
  return report(emulator::put(node, graph, dependencies, count, work, emulator::check_box(box)));
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, size_t count, void* to,
                                     const void* from, size_t size, cudaMemcpyKind kind) {
  EMULATOR_RETURN_IF_STICKY();
  NodeWork work;
  const cudaError_t error = emulator::make_copy_work(to, from, size, kind, &work);
  return report(emulator::put(node, graph, dependencies, count, work, error));
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from,
                                           size_t size, cudaMemcpyKind kind) {
  EMULATOR_RETURN_IF_STICKY();
  NodeWork work;
  const cudaError_t error = emulator::make_copy_work(to, from, size, kind, &work);
  return report(emulator::change(node, work, error));
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaMemsetParams* params) {
  EMULATOR_RETURN_IF_STICKY();
  NodeWork work;
  const cudaError_t error = emulator::make_fill_work(params, &work);
  return report(emulator::put(node, graph, dependencies, count, work, error));
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* params) {
  EMULATOR_RETURN_IF_STICKY();
  NodeWork work;
  const cudaError_t error = emulator::make_fill_work(params, &work);
  return report(emulator::change(node, work, error));
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* dependencies, size_t count,
                                 const cudaHostNodeParams* params) {
  EMULATOR_RETURN_IF_STICKY();
  NodeWork work;
  const cudaError_t error = emulator::make_host_work(params, &work);
  return report(emulator::put(node, graph, dependencies, count, work, error));
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* params) {
  EMULATOR_RETURN_IF_STICKY();
  NodeWork work;
  const cudaError_t error = emulator::make_host_work(params, &work);
  return report(emulator::change(node, work, error));
}

// The graph is copied, as it is now.
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* dependencies, size_t count,
                                       cudaGraph_t child) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  if (!emulator::is_graph(child)) return report(cudaErrorInvalidValue);
  const std::shared_ptr<emulator::Plan> plan = emulator::make_plan(child);
  if (plan == nullptr) return report(cudaErrorInvalidValue);
  if (emulator::has_memory(*plan)) return report(cudaErrorNotSupported);
  NodeWork work;
  work.type = cudaGraphNodeTypeGraph;
  work.label = "graph";
  work.child = plan;
  work.run = [plan](cudaStream_t stream) { return emulator::run_plan(plan.get(), stream); };
  return report(emulator::put(node, graph, dependencies, count, work));
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                        const cudaGraphNode_t* dependencies, size_t count,
                                        cudaEvent_t event) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_event(event)) return report(cudaErrorInvalidValue);
  return report(emulator::put(node, graph, dependencies, count, emulator::work_of_record(event)));
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                      const cudaGraphNode_t* dependencies, size_t count,
                                      cudaEvent_t event) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_event(event)) return report(cudaErrorInvalidValue);
  return report(emulator::put(node, graph, dependencies, count, emulator::work_of_wait(event)));
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, size_t count,
                                     cudaMemAllocNodeParams* params) {
  EMULATOR_RETURN_IF_STICKY();
  if (params == nullptr || params->bytesize == 0 ||
      params->poolProps.allocType != cudaMemAllocationTypePinned ||
      params->poolProps.location.type != cudaMemLocationTypeDevice)
    return report(cudaErrorInvalidValue);
  emulator::install_fault_handler();
  const auto memory = emulator::GraphMemory::make(params->bytesize);
  if (memory == nullptr) return report(cudaErrorMemoryAllocation);
  const cudaError_t error =
      emulator::put(node, graph, dependencies, count, emulator::work_of_allocation(memory));
  if (error == cudaSuccess) params->dptr = memory->address();
  return report(error);
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                    const cudaGraphNode_t* dependencies, size_t count, void* ptr) {
  EMULATOR_RETURN_IF_STICKY();
  const auto memory = emulator::find_graph_memory(ptr);
  if (memory == nullptr) return report(cudaErrorInvalidValue);
  return report(emulator::put(node, graph, dependencies, count, emulator::work_of_free(memory)));
}
