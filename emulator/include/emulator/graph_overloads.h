/*!
 * \file graph_overloads.h
 * \brief Functions of graphs as CUDA 12 and 11 have them, and kernels as nodes.
 */
#ifndef EMULATOR_GRAPH_OVERLOADS_H_
#define EMULATOR_GRAPH_OVERLOADS_H_

// It uses what C++17 has, which compilers take in older standards too, with a warning.
#pragma GCC system_header

#include <memory>

#include "emulator/graph_api.h"
#include "emulator/launch.h"

inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphNode_t*,
                                        char*, size_t) {
  return cudaGraphInstantiate(exec, graph, 0ULL);
}
inline cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                     size_t* count) {
  return cudaGraphGetEdges(graph, from, to, nullptr, count);
}
inline cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                                size_t* count) {
  return cudaGraphNodeGetDependencies(node, nodes, nullptr, count);
}
inline cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                                  size_t* count) {
  return cudaGraphNodeGetDependentNodes(node, nodes, nullptr, count);
}
inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                            const cudaGraphNode_t* to, size_t count) {
  return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}
inline cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                               const cudaGraphNode_t* to, size_t count) {
  return cudaGraphRemoveDependencies(graph, from, to, nullptr, count);
}
inline cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                       size_t count, unsigned flags = 0) {
  return cudaStreamUpdateCaptureDependencies(stream, nodes, nullptr, count, flags);
}
inline cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                               unsigned long long* id = nullptr,
                                               cudaGraph_t* graph = nullptr,
                                               const cudaGraphNode_t** nodes = nullptr,
                                               size_t* count = nullptr) {
  return cudaStreamGetCaptureInfo(stream, status, id, graph, nodes, nullptr, count);
}
inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                       cudaGraphNode_t* error_node,
                                       cudaGraphExecUpdateResult* result) {
  cudaGraphExecUpdateResultInfo info;
  const cudaError_t error = cudaGraphExecUpdate(exec, graph, &info);
  if (error_node != nullptr) *error_node = info.errorNode;
  if (result != nullptr) *result = info.result;
  return error;
}

namespace emulator {

/*! \brief What makes a launch of a kernel and the addresses of its arguments: calls `use` with it.
 */
typedef void (*CallMaker)(const void* kernel, void** args, void (*use)(const CallData&, void*),
                          void* data);

/*! \brief Keeps how a kernel is called, for those who know its address alone. */
void keep_kernel(const void* kernel, const char* name, CallMaker maker);

template <typename... Args, size_t... I>
void make_call(void (*kernel)(Args...), index_sequence<I...>, void** args,
               void (*use)(const CallData&, void*), void* data) {
  typedef Call<ThreadOf<Args...>, NoBlocks> Each;
  const Each call{
      ThreadOf<Args...>(kernel, *static_cast<const remove_reference_t<Args>*>(args[I])...), {}};
  const void* const pointers[] = {
      pointer_of(*static_cast<const remove_reference_t<Args>*>(args[I]))..., nullptr};
  const void* const arguments[] = {args[I]..., nullptr};
  const size_t sizes[] = {sizeof(Args)..., 0};
  CallData made{&Each::run, nullptr, &call, sizeof call, pointers, sizeof...(I)};
  made.arguments = arguments;
  made.sizes = sizes;
  use(made, data);
}

/*!
 * \brief A kernel, whose types are kept from here on.
 *
 * cuda_source/refusals.py has it in the place of a kernel that is cast to a void pointer, as the
 * parameters of a node need it.
 */
template <typename... Args>
auto kept_kernel(const char* name, void (*kernel)(Args...)) -> void (*)(Args...) {
  keep_kernel(
      reinterpret_cast<const void*>(kernel), name,
      [](const void* address, void** args, void (*use)(const CallData&, void*), void* data) {
        auto typed = reinterpret_cast<void (*)(Args...)>(const_cast<void*>(address));
        make_call(typed, index_sequence_for<Args...>(), args, use, data);
      });
  return kernel;
}

}  // namespace emulator

#endif  // EMULATOR_GRAPH_OVERLOADS_H_
