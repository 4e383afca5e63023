/*!
 * \file graph_plan.h
 * \brief What is left of a graph once it is instantiated: its work, and in which order it may be
 * done.
 *
 * Nodes run one at a time. By which streams they run shows only in the checked build: nodes that
 * wait for each other in turn make a lane, which is a stream of its own there, and edges between
 * lanes are events. So whoever uses the same memory with no edges in between is found by the
 * clocks that find it between streams, see checked/streams.h.
 */
#ifndef EMULATOR_GRAPH_PLAN_H_
#define EMULATOR_GRAPH_PLAN_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "graph.h"

namespace emulator {

struct Step {
  std::shared_ptr<const NodeWork> work;
  std::vector<size_t> dependencies;  // steps that come before this one
  size_t lane;
  uint64_t node;  // its number
  bool enabled = true;
};

struct Plan {
  Plan() = default;
  ~Plan();
  Plan(const Plan&) = delete;
  void operator=(const Plan&) = delete;

  std::vector<Step> steps;
  std::vector<cudaStream_t> lanes;  // but for the first, which is the stream of the launch
  uint64_t launches = 0;
};

/*! \brief Null if nodes wait for each other in a circle. */
std::shared_ptr<Plan> make_plan(cudaGraph_t graph);
/*! \brief Does all of it; the first error. */
cudaError_t run_plan(Plan* plan, cudaStream_t stream);
/*! \brief Whether it allocates or frees memory. */
bool has_memory(const Plan& plan);

/*! \brief A stream that the program does not know, and what becomes of it. */
cudaStream_t take_hidden_stream();
void leave_hidden_stream(cudaStream_t stream);

}  // namespace emulator

struct CUgraphExec_st {
  std::shared_ptr<emulator::Plan> plan;
  unsigned long long flags;
  std::recursive_mutex mutex;  // launches take turns
};

#endif  // EMULATOR_GRAPH_PLAN_H_
