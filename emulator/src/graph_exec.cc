/*!
 * \file graph_exec.cc
 * \brief Graphs that can be launched.
 */
#include <set>

#include "capture.h"
#include "error.h"
#include "graph_nodes.h"
#include "graph_plan.h"
#include "kernel_call.h"
#include "stream.h"

namespace emulator {
namespace {

// Used until the very end: they may be static objects of the program.
auto& execs = *new std::set<cudaGraphExec_t>;

const unsigned long long kFlags =
    cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUseNodePriority;

bool is_exec(cudaGraphExec_t exec) {
  std::lock_guard<std::recursive_mutex> lock(graphs_mutex());
  return execs.count(exec) > 0;
}

// What was allocated by the launch before has to be freed, or is.
cudaError_t prepare_memory(const CUgraphExec_st& exec) {
  for (const Step& step : exec.plan->steps) {
    if (step.work->type != cudaGraphNodeTypeMemAlloc || !step.work->memory->is_live()) continue;
    if ((exec.flags & cudaGraphInstantiateFlagAutoFreeOnLaunch) == 0) return cudaErrorInvalidValue;
    step.work->memory->free();
  }
  return cudaSuccess;
}

cudaError_t launch_exec(cudaGraphExec_t exec, cudaStream_t stream) {
  std::lock_guard<std::recursive_mutex> lock(exec->mutex);
  const cudaError_t error = prepare_memory(*exec);
  return error == cudaSuccess ? run_plan(exec->plan.get(), stream) : error;
}

// The step that was made of a node, or null.
Step* find_step(cudaGraphExec_t exec, cudaGraphNode_t node) {
  if (!is_exec(exec) || !is_node(node)) return nullptr;
  for (Step& step : exec->plan->steps)
    if (step.node == node->number) return &step;
  return nullptr;
}

cudaError_t set_work(cudaGraphExec_t exec, cudaGraphNode_t node, const NodeWork* work,
                     cudaGraphNodeType type) {
  std::lock_guard<std::recursive_mutex> lock(graphs_mutex());
  Step* step = find_step(exec, node);
  if (step == nullptr || work == nullptr || step->work->type != type) return cudaErrorInvalidValue;
  step->work = std::make_shared<const NodeWork>(*work);
  return cudaSuccess;
}

// Why a graph can't take the place of the one that was instantiated; the node, too.
cudaGraphExecUpdateResult compare(const Plan& plan, cudaGraph_t graph, const Plan& wanted,
                                  cudaGraphNode_t* node) {
  *node = nullptr;
  if (plan.steps.size() != wanted.steps.size()) return cudaGraphExecUpdateErrorTopologyChanged;
  const std::vector<cudaGraphNode_t> order = in_order(graph);
  for (size_t i = 0; i < order.size(); ++i) {
    const Step &old = plan.steps[i], &now = wanted.steps[i];
    *node = order[i];
    if (old.work->type != now.work->type) return cudaGraphExecUpdateErrorNodeTypeChanged;
    if (old.dependencies != now.dependencies) return cudaGraphExecUpdateErrorTopologyChanged;
    if (now.work->memory != nullptr || now.work->child != nullptr)
      return cudaGraphExecUpdateErrorNotSupported;
  }
  *node = nullptr;
  return cudaGraphExecUpdateSuccess;
}

}  // namespace
}  // namespace emulator

using emulator::report;
typedef std::lock_guard<std::recursive_mutex> Lock;

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  if (exec == nullptr || !emulator::is_graph(graph) || (flags & ~emulator::kFlags) != 0)
    return report(cudaErrorInvalidValue);
  *exec = nullptr;
  auto plan = emulator::make_plan(graph);
  if (plan == nullptr) return report(cudaErrorInvalidValue);
  *exec = new CUgraphExec_st{plan, flags, {}};
  emulator::execs.insert(*exec);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  EMULATOR_HOST_CALL();
  return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  EMULATOR_RETURN_IF_STICKY();
  if (flags == nullptr || !emulator::is_exec(exec)) return report(cudaErrorInvalidValue);
  *flags = exec->flags;
  return cudaSuccess;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  if (result == nullptr || !emulator::is_exec(exec) || !emulator::is_graph(graph))
    return report(cudaErrorInvalidValue);
  *result = {cudaGraphExecUpdateError, nullptr, nullptr};
  auto wanted = emulator::make_plan(graph);
  if (wanted == nullptr) return report(cudaErrorGraphExecUpdateFailure);
  result->result = emulator::compare(*exec->plan, graph, *wanted, &result->errorNode);
  if (result->result != cudaGraphExecUpdateSuccess) return report(cudaErrorGraphExecUpdateFailure);
  std::lock_guard<std::recursive_mutex> launch(exec->mutex);
  for (size_t i = 0; i < wanted->steps.size(); ++i)
    exec->plan->steps[i].work = wanted->steps[i].work;
  return cudaSuccess;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  EMULATOR_RETURN_IF_STICKY();
  emulator::NodeWork work;
  const cudaError_t error = emulator::make_kernel_work(params, nullptr, 0, &work);
  if (error != cudaSuccess) return report(error);
  return report(emulator::set_work(exec, node, &work, cudaGraphNodeTypeKernel));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to,
                                               const void* from, size_t size, cudaMemcpyKind kind) {
  EMULATOR_RETURN_IF_STICKY();
  emulator::NodeWork work;
  const cudaError_t error = emulator::make_copy_work(to, from, size, kind, &work);
  if (error != cudaSuccess) return report(error);
  return report(emulator::set_work(exec, node, &work, cudaGraphNodeTypeMemcpy));
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* params) {
  EMULATOR_RETURN_IF_STICKY();
  emulator::NodeWork work;
  const cudaError_t error = emulator::make_fill_work(params, &work);
  if (error != cudaSuccess) return report(error);
  return report(emulator::set_work(exec, node, &work, cudaGraphNodeTypeMemset));
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const cudaHostNodeParams* params) {
  EMULATOR_RETURN_IF_STICKY();
  emulator::NodeWork work;
  const cudaError_t error = emulator::make_host_work(params, &work);
  if (error != cudaSuccess) return report(error);
  return report(emulator::set_work(exec, node, &work, cudaGraphNodeTypeHost));
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  emulator::Step* step = emulator::find_step(exec, node);
  if (step == nullptr || step->work->type > cudaGraphNodeTypeMemset)
    return report(cudaErrorInvalidValue);
  step->enabled = enabled != 0;
  return cudaSuccess;
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  emulator::Step* step = emulator::find_step(exec, node);
  if (step == nullptr || enabled == nullptr || step->work->type > cudaGraphNodeTypeMemset)
    return report(cudaErrorInvalidValue);
  *enabled = step->enabled;
  return cudaSuccess;
}

// All of it is here already.
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_exec(exec)) return report(cudaErrorInvalidValue);
  if (!emulator::is_stream(stream)) return report(cudaErrorInvalidResourceHandle);
  return report(emulator::refuse_in_capture(stream));
}

// In a stream that captures, the graph becomes one node.
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_exec(exec)) return report(cudaErrorInvalidValue);
  if (!emulator::is_stream(stream)) return report(cudaErrorInvalidResourceHandle);
  if (!emulator::is_any_capture()) return report(emulator::launch_exec(exec, stream));
  emulator::NodeWork work;
  work.type = cudaGraphNodeTypeGraph;
  work.label = "graph";
  work.child = exec->plan;
  auto plan = exec->plan;
  work.run = [plan](cudaStream_t lane) { return emulator::run_plan(plan.get(), lane); };
  auto now = [exec](cudaStream_t mine) { return emulator::launch_exec(exec, mine); };
  if (emulator::is_in_capture(stream) && emulator::has_memory(*plan))
    return report(emulator::refuse_in_capture(stream));
  return report(emulator::submit_while_capturing(stream, work, now));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  EMULATOR_HOST_CALL();
  {
    Lock lock(emulator::graphs_mutex());
    if (emulator::execs.erase(exec) == 0) return report(cudaErrorInvalidValue);
  }
  delete exec;
  return cudaSuccess;
}
