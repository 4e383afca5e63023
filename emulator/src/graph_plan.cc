/*!
 * \file graph_plan.cc
 * \brief The order of a graph's work: drawn anew each time where the program is checked.
 */
#include "graph_plan.h"

#include <algorithm>
#include <map>
#include <random>

#include "block.h"
#include "checked.h"
#include "error.h"

namespace emulator {
namespace {

#ifdef EMULATOR_CHECKED
const bool kIsChecked = true;
#else
const bool kIsChecked = false;
#endif

// Events of the checked build's own: places in memory that are no events of the program.
[[maybe_unused]] cudaEvent_t event_of(const void* place) {
  return reinterpret_cast<cudaEvent_t>(const_cast<void*>(place));
}

// A step goes on in the lane of a step before it, where that was the lane's last one.
void assign_lanes(Plan* plan) {
  std::vector<size_t> last;  // of each lane
  for (size_t i = 0; i < plan->steps.size(); ++i) {
    Step& step = plan->steps[i];
    step.lane = last.size();
    for (size_t before : step.dependencies) {
      const size_t lane = plan->steps[before].lane;
      if (last[lane] != before) continue;
      step.lane = lane;
      break;
    }
    if (step.lane == last.size()) last.push_back(i);
    last[step.lane] = i;
  }
  for (size_t lane = 1; kIsChecked && lane < last.size(); ++lane)
    plan->lanes.push_back(take_hidden_stream());
}

/*! \brief Which steps may be done next. */
class Ready {
 public:
  explicit Ready(const Plan& plan)
      : missing_(plan.steps.size()), after_(plan.steps.size()), random_(seed(plan)) {
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      missing_[i] = plan.steps[i].dependencies.size();
      for (size_t before : plan.steps[i].dependencies) after_[before].push_back(i);
      if (missing_[i] == 0) ready_.push_back(i);
    }
    is_drawn_ = kIsChecked || shuffle_seed() != 0;
  }

  bool any() const { return first_ < ready_.size(); }
  size_t take() {
    if (is_drawn_) std::swap(ready_[first_], ready_[first_ + random_() % (ready_.size() - first_)]);
    return ready_[first_++];
  }
  void done(size_t step) {
    for (size_t next : after_[step])
      if (--missing_[next] == 0) ready_.push_back(next);
  }
  bool is_last(size_t step) const { return after_[step].empty(); }

 private:
  static uint64_t seed(const Plan& plan) {
    return (uint64_t(shuffle_seed()) << 32) + plan.launches;
  }

  std::vector<size_t> missing_, ready_;
  size_t first_ = 0;
  std::vector<std::vector<size_t>> after_;
  std::mt19937_64 random_;
  bool is_drawn_;
};

cudaStream_t stream_of(const Plan& plan, const Step& step, cudaStream_t stream) {
  return step.lane == 0 || plan.lanes.empty() ? stream : plan.lanes[step.lane - 1];
}

void wait_for_steps(const Plan& plan, const Step& step, [[maybe_unused]] cudaStream_t mine) {
  for (size_t before : step.dependencies)
    if (plan.steps[before].lane != step.lane)
      EMULATOR_CHECK(stream_waits_for_event(mine, event_of(&plan.steps[before])));
}

cudaError_t run_step(const Plan& plan, const Step& step, cudaStream_t stream) {
  const cudaStream_t mine = stream_of(plan, step, stream);
  wait_for_steps(plan, step, mine);
  cudaError_t error = cudaSuccess;
  if (step.enabled && step.work->run) {
    EMULATOR_CHECK(AtPlace at(step.work->place));
    error = step.work->run(mine);
  }
  EMULATOR_CHECK(event_recorded(event_of(&step), mine));
  return error;
}

}  // namespace

Plan::~Plan() {
  for (const Step& step : steps) {
    (void)step;
    EMULATOR_CHECK(event_forgotten(event_of(&step)));
  }
  EMULATOR_CHECK(event_forgotten(event_of(this)));
  for (cudaStream_t lane : lanes) leave_hidden_stream(lane);
}

std::shared_ptr<Plan> make_plan(cudaGraph_t graph) {
  const std::vector<cudaGraphNode_t> order = in_order(graph);
  if (order.size() != graph->nodes.size()) return nullptr;
  auto plan = std::make_shared<Plan>();
  std::map<cudaGraphNode_t, size_t> number;
  for (cudaGraphNode_t node : order) {
    Step step{node->work, {}, 0, node->number};
    for (cudaGraphNode_t before : node->dependencies) step.dependencies.push_back(number[before]);
    number[node] = plan->steps.size();
    plan->steps.push_back(step);
  }
  assign_lanes(plan.get());
  return plan;
}

cudaError_t run_plan(Plan* plan, [[maybe_unused]] cudaStream_t stream) {
  EMULATOR_CHECK(GraphLaunch launch);
  // Behind what the stream was given before, and behind the last launch of the same graph.
  if (plan->launches++ > 0) EMULATOR_CHECK(stream_waits_for_event(stream, event_of(plan)));
  EMULATOR_CHECK(event_recorded(event_of(plan), stream));
  for (cudaStream_t lane : plan->lanes) {
    (void)lane;
    EMULATOR_CHECK(stream_waits_for_event(lane, event_of(plan)));
  }
  cudaError_t error = cudaSuccess;
  std::vector<size_t> last;
  for (Ready ready(*plan); ready.any() && error == cudaSuccess;) {
    const size_t next = ready.take();
    error = run_step(*plan, plan->steps[next], stream);
    ready.done(next);
    if (ready.is_last(next)) last.push_back(next);
  }
  // Only now: the stream is a lane, too.
  for (size_t step : last) {
    (void)step;
    EMULATOR_CHECK(stream_waits_for_event(stream, event_of(&plan->steps[step])));
  }
  EMULATOR_CHECK(event_recorded(event_of(plan), stream));
  return error;
}

bool has_memory(const Plan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(),
                     [](const Step& step) { return step.work->memory != nullptr; });
}

}  // namespace emulator
