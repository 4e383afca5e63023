/*!
 * \file graph.h
 * \brief Graphs: nodes of work, and what must be done before each.
 */
#ifndef EMULATOR_GRAPH_H_
#define EMULATOR_GRAPH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "checked.h"
#include "cuda_runtime_api.h"
#include "graph_memory.h"

namespace emulator {

class KernelCall;
struct Plan;

/*! \brief What a node does, once its graph is launched. Never changed: a node gets another one. */
struct NodeWork {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  std::string label;                                 // for pictures
  std::function<cudaError_t(cudaStream_t)> run;      // in a stream; null if there is nothing to do
  const void* function = nullptr;                    // a kernel's code
  std::shared_ptr<const KernelCall> kernel;          // of a node that was made by hand
  std::shared_ptr<GraphMemory> memory;               // that it allocates or frees
  std::shared_ptr<Plan> child;                       // the graph that it is
  checked::CallPlace place = checked::call_place();  // where the program asked for it
};

/*! \brief Guards all graphs and captures. */
std::recursive_mutex& graphs_mutex();

/*! \brief Whether a graph, or a node, was created and not destroyed. */
bool is_graph(cudaGraph_t graph);
bool is_node(cudaGraphNode_t node);

cudaGraph_t make_graph();
void destroy_graph(cudaGraph_t graph);
/*! \brief Adds a node that waits for others of the same graph; null if they are not. */
cudaGraphNode_t add_node(cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                         NodeWork work);
/*! \brief The nodes that come before some others, and those themselves. */
std::vector<cudaGraphNode_t> with_all_before(const std::vector<cudaGraphNode_t>& nodes);
/*! \brief All nodes, each behind those that it waits for; fewer if they wait for each other. */
std::vector<cudaGraphNode_t> in_order(cudaGraph_t graph);

}  // namespace emulator

struct CUgraphNode_st {
  cudaGraph_t graph;
  std::shared_ptr<const emulator::NodeWork> work;
  std::vector<cudaGraphNode_t> dependencies;
  uint64_t number;           // among all nodes of all graphs
  cudaGraphNode_t original;  // of which it is the clone; or null
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};

#endif  // EMULATOR_GRAPH_H_
