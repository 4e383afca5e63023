/*!
 * \file graph.cc
 * \brief Graphs as the program sees them: nodes and edges.
 */
#include "graph.h"

#include <algorithm>
#include <set>

#include "error.h"

namespace emulator {
namespace {

// Used until the very end: graphs may be static objects of the program.
auto& graphs = *new std::set<cudaGraph_t>;
auto& nodes = *new std::set<cudaGraphNode_t>;
uint64_t last_number = 0;

bool waits_for(cudaGraphNode_t node, cudaGraphNode_t other) {
  const auto& all = node->dependencies;
  return std::find(all.begin(), all.end(), other) != all.end();
}

}  // namespace

std::recursive_mutex& graphs_mutex() {
  static auto& mutex = *new std::recursive_mutex;
  return mutex;
}

bool is_graph(cudaGraph_t graph) {
  std::lock_guard<std::recursive_mutex> lock(graphs_mutex());
  return graphs.count(graph) > 0;
}

bool is_node(cudaGraphNode_t node) {
  std::lock_guard<std::recursive_mutex> lock(graphs_mutex());
  return nodes.count(node) > 0;
}

cudaGraph_t make_graph() {
  std::lock_guard<std::recursive_mutex> lock(graphs_mutex());
  return *graphs.insert(new CUgraph_st).first;
}

void destroy_graph(cudaGraph_t graph) {
  std::lock_guard<std::recursive_mutex> lock(graphs_mutex());
  for (const auto& node : graph->nodes) nodes.erase(node.get());
  graphs.erase(graph);
  delete graph;
}

cudaGraphNode_t add_node(cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                         NodeWork work) {
  std::lock_guard<std::recursive_mutex> lock(graphs_mutex());
  std::vector<cudaGraphNode_t> before;
  for (size_t i = 0; i < count; ++i) {
    if (!is_node(dependencies[i]) || dependencies[i]->graph != graph) return nullptr;
    if (std::find(before.begin(), before.end(), dependencies[i]) != before.end()) return nullptr;
    before.push_back(dependencies[i]);
  }
  graph->nodes.emplace_back(new CUgraphNode_st{
      graph, std::make_shared<const NodeWork>(std::move(work)), before, ++last_number, nullptr});
  cudaGraphNode_t node = graph->nodes.back().get();
  nodes.insert(node);
  return node;
}

std::vector<cudaGraphNode_t> with_all_before(const std::vector<cudaGraphNode_t>& some) {
  std::vector<cudaGraphNode_t> found;
  std::set<cudaGraphNode_t> seen;
  auto add = [&](cudaGraphNode_t node) {
    if (seen.insert(node).second) found.push_back(node);
  };
  for (cudaGraphNode_t node : some) add(node);
  for (size_t i = 0; i < found.size(); ++i)
    for (cudaGraphNode_t before : found[i]->dependencies) add(before);
  return found;
}

std::vector<cudaGraphNode_t> in_order(cudaGraph_t graph) {
  std::vector<cudaGraphNode_t> order;
  std::set<cudaGraphNode_t> placed;
  auto is_ready = [&](cudaGraphNode_t node) {
    for (cudaGraphNode_t before : node->dependencies)
      if (placed.count(before) == 0) return false;
    return true;
  };
  std::vector<cudaGraphNode_t> left;
  for (const auto& node : graph->nodes) left.push_back(node.get());
  for (size_t before = left.size() + 1; !left.empty() && left.size() < before;) {
    before = left.size();
    std::vector<cudaGraphNode_t> later;
    for (cudaGraphNode_t node : left) {
      if (!is_ready(node)) {
        later.push_back(node);
        continue;
      }
      order.push_back(node);
      placed.insert(node);
    }
    left = later;
  }
  return order;
}

namespace {

// What functions that list things do: as many as there is room for, and how many there are.
template <typename T>
void list(const std::vector<T>& all, T* into, size_t* count) {
  if (into == nullptr) {
    *count = all.size();
    return;
  }
  for (size_t i = 0; i < *count; ++i) into[i] = i < all.size() ? all[i] : nullptr;
  *count = std::min(*count, all.size());
}

void no_edge_data(cudaGraphEdgeData* edges, size_t count) {
  for (size_t i = 0; edges != nullptr && i < count; ++i) edges[i] = {};
}

std::vector<cudaGraphNode_t> all_nodes(cudaGraph_t graph) {
  std::vector<cudaGraphNode_t> all;
  for (const auto& node : graph->nodes) all.push_back(node.get());
  return all;
}

std::vector<cudaGraphNode_t> after(cudaGraphNode_t node) {
  std::vector<cudaGraphNode_t> all;
  for (const auto& other : node->graph->nodes)
    if (waits_for(other.get(), node)) all.push_back(other.get());
  return all;
}

bool are_plain(const cudaGraphEdgeData* edges, size_t count) {
  for (size_t i = 0; edges != nullptr && i < count; ++i)
    if (edges[i].from_port != 0 || edges[i].to_port != 0 || edges[i].type != 0) return false;
  return true;
}

// Calls change(from, to) for each edge, once all of them are found to be right.
template <typename Change>
cudaError_t change_edges(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                         const cudaGraphEdgeData* edges, size_t count, bool there, Change change) {
  if (!is_graph(graph) || (count > 0 && (from == nullptr || to == nullptr)))
    return cudaErrorInvalidValue;
  if (!are_plain(edges, count)) return cudaErrorNotSupported;
  for (size_t i = 0; i < count; ++i)
    if (!is_node(from[i]) || !is_node(to[i]) || from[i]->graph != graph || to[i]->graph != graph ||
        from[i] == to[i] || waits_for(to[i], from[i]) != there)
      return cudaErrorInvalidValue;
  for (size_t i = 0; i < count; ++i) change(from[i], to[i]);
  return cudaSuccess;
}

}  // namespace
}  // namespace emulator

using emulator::report;
typedef std::lock_guard<std::recursive_mutex> Lock;

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  EMULATOR_RETURN_IF_STICKY();
  if (graph == nullptr || flags != 0) return report(cudaErrorInvalidValue);
  *graph = emulator::make_graph();
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  EMULATOR_HOST_CALL();
  if (!emulator::is_graph(graph)) return report(cudaErrorInvalidValue);
  emulator::destroy_graph(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  if (clone == nullptr || !emulator::is_graph(graph)) return report(cudaErrorInvalidValue);
  *clone = emulator::make_graph();
  std::vector<cudaGraphNode_t> made;
  for (const auto& node : graph->nodes) {
    made.push_back(emulator::add_node(*clone, nullptr, 0, *node->work));
    made.back()->original = node.get();
  }
  for (size_t i = 0; i < made.size(); ++i)
    for (cudaGraphNode_t before : graph->nodes[i]->dependencies)
      for (size_t k = 0; k < made.size(); ++k)
        if (graph->nodes[k].get() == before) made[i]->dependencies.push_back(made[k]);
  return cudaSuccess;
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* found, cudaGraphNode_t node,
                                     cudaGraph_t clone) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  if (found == nullptr || !emulator::is_graph(clone)) return report(cudaErrorInvalidValue);
  for (const auto& own : clone->nodes) {
    if (own->original != node) continue;
    *found = own.get();
    return cudaSuccess;
  }
  return report(cudaErrorInvalidValue);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  if (count == nullptr || !emulator::is_graph(graph)) return report(cudaErrorInvalidValue);
  emulator::list(emulator::all_nodes(graph), nodes, count);
  return cudaSuccess;
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  if (count == nullptr || !emulator::is_graph(graph)) return report(cudaErrorInvalidValue);
  std::vector<cudaGraphNode_t> roots;
  for (const auto& node : graph->nodes)
    if (node->dependencies.empty()) roots.push_back(node.get());
  emulator::list(roots, nodes, count);
  return cudaSuccess;
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* edges, size_t* count) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  if (count == nullptr || !emulator::is_graph(graph) || (from == nullptr) != (to == nullptr))
    return report(cudaErrorInvalidValue);
  std::vector<cudaGraphNode_t> begins, ends;
  for (const auto& node : graph->nodes)
    for (cudaGraphNode_t before : node->dependencies) {
      begins.push_back(before);
      ends.push_back(node.get());
    }
  size_t same = *count;
  emulator::list(begins, from, count);
  emulator::list(ends, to, &same);
  if (from != nullptr) emulator::no_edge_data(edges, *count);
  return cudaSuccess;
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                         cudaGraphEdgeData* edges, size_t* count) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  if (count == nullptr || !emulator::is_node(node)) return report(cudaErrorInvalidValue);
  emulator::list(node->dependencies, nodes, count);
  if (nodes != nullptr) emulator::no_edge_data(edges, *count);
  return cudaSuccess;
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                           cudaGraphEdgeData* edges, size_t* count) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  if (count == nullptr || !emulator::is_node(node)) return report(cudaErrorInvalidValue);
  emulator::list(emulator::after(node), nodes, count);
  if (nodes != nullptr) emulator::no_edge_data(edges, *count);
  return cudaSuccess;
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  if (type == nullptr || !emulator::is_node(node)) return report(cudaErrorInvalidValue);
  *type = node->work->type;
  return cudaSuccess;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                     size_t count) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  auto add = [](cudaGraphNode_t before, cudaGraphNode_t node) {
    node->dependencies.push_back(before);
  };
  return report(emulator::change_edges(graph, from, to, edges, count, false, add));
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                        size_t count) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  auto remove = [](cudaGraphNode_t before, cudaGraphNode_t node) {
    auto& all = node->dependencies;
    all.erase(std::find(all.begin(), all.end(), before));
  };
  return report(emulator::change_edges(graph, from, to, edges, count, true, remove));
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  EMULATOR_RETURN_IF_STICKY();
  Lock lock(emulator::graphs_mutex());
  if (!emulator::is_node(node)) return report(cudaErrorInvalidValue);
  // Memory that a graph allocates has to be freed in the same graph, or outside.
  if (node->work->memory != nullptr) return report(cudaErrorNotSupported);
  for (cudaGraphNode_t other : emulator::after(node)) {
    auto& all = other->dependencies;
    all.erase(std::find(all.begin(), all.end(), node));
  }
  emulator::nodes.erase(node);
  auto& all = node->graph->nodes;
  all.erase(
      std::find_if(all.begin(), all.end(), [&](const auto& own) { return own.get() == node; }));
  return cudaSuccess;
}
