// Random work on random streams with events, by a seed: the values after some launches of the
// captured graph are those of the same work in one stream, in order, and of the same streams
// without a graph.
//
//   random_graphs SEED COUNT    prints a line for each seed; 1 if values differ
//   random_graphs SEED          the graph without its events: whether two steps surely collide
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define OK(call)                                                                \
  do {                                                                          \
    cudaError_t error_ = (call);                                                \
    if (error_ != cudaSuccess) {                                                \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorName(error_)); \
      std::exit(1);                                                             \
    }                                                                           \
  } while (0)

struct Factors {
  unsigned a, b;
};

__global__ void mix(const unsigned* x, const unsigned* y, unsigned* out, Factors by, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * by.a + y[(i + 1) % n] * by.b + out[i] + 1;
}

__global__ void step(unsigned* data, unsigned factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = data[i] * factor + i;
}

const int kBuffers = 6, kStreams = 4, kSize = 97;
const size_t kBytes = kSize * sizeof(unsigned);

enum class Kind { kMix, kStep, kCopy, kSet, kHost };

struct Task {
  Kind kind;
  int stream, reads[2], writes;
  unsigned value;
};

struct Program {
  std::vector<Task> tasks;
  int launches;

  explicit Program(unsigned seed) {
    unsigned long long state = seed * 0x9e3779b97f4a7c15ULL + 1;
    auto below = [&](int n) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      return static_cast<int>((state >> 33) % static_cast<unsigned>(n));
    };
    const int count = 1 + below(25), streams = 1 + below(kStreams);
    launches = 1 + below(4);
    for (int i = 0; i < count; ++i)
      tasks.push_back({static_cast<Kind>(below(5)),
                       below(streams),
                       {below(kBuffers), below(kBuffers)},
                       below(kBuffers),
                       static_cast<unsigned>(below(1000)) * 2 + 3});
  }
};

// Whether two kernels that write all of a buffer are in different streams.
static bool collides(const Program& program) {
  for (const Task& a : program.tasks)
    for (const Task& b : program.tasks)
      if (a.kind == Kind::kStep && b.kind == Kind::kStep && a.writes == b.writes &&
          a.stream != b.stream)
        return true;
  return false;
}

struct HostTask {
  unsigned* counter;
  unsigned value;
};
static void call_host(void* data) {
  HostTask* task = static_cast<HostTask*>(data);
  *task->counter = *task->counter * 3 + task->value;
}

struct Buffers {
  unsigned* data[kBuffers];
  unsigned* counters;  // of the host, one a buffer

  Buffers() {
    counters = static_cast<unsigned*>(std::calloc(kBuffers, sizeof(unsigned)));
    for (int k = 0; k < kBuffers; ++k) {
      std::vector<unsigned> first(kSize);
      for (int i = 0; i < kSize; ++i) first[i] = static_cast<unsigned>(i * (k + 3));
      OK(cudaMalloc(&data[k], kBytes));
      OK(cudaMemcpy(data[k], first.data(), kBytes, cudaMemcpyHostToDevice));
    }
    OK(cudaDeviceSynchronize());
  }
  ~Buffers() {
    for (unsigned* each : data) OK(cudaFree(each));
    std::free(counters);
  }
  std::vector<unsigned> get() const {
    std::vector<unsigned> all(kBuffers * kSize + kBuffers);
    OK(cudaDeviceSynchronize());
    for (int k = 0; k < kBuffers; ++k) {
      OK(cudaMemcpy(&all[k * kSize], data[k], kBytes, cudaMemcpyDeviceToHost));
      all[kBuffers * kSize + k] = counters[k];
    }
    return all;
  }
};

// What each buffer was last written by, and who read it since: events.
struct Uses {
  cudaEvent_t written = nullptr;
  int writer = -1;
  std::vector<std::pair<int, cudaEvent_t>> readers;
};

struct Run {
  Buffers buffers;
  std::vector<cudaStream_t> streams;
  std::vector<cudaEvent_t> events;
  std::vector<HostTask*> host_tasks;
  Uses uses[kBuffers];
  bool is_ordered = true;  // by events, where tasks use the same memory

  explicit Run(int count) : streams(count) {
    for (cudaStream_t& stream : streams)
      OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  ~Run() {
    for (cudaStream_t stream : streams) OK(cudaStreamDestroy(stream));
    for (cudaEvent_t event : events) OK(cudaEventDestroy(event));
    for (HostTask* task : host_tasks) delete task;
  }
  cudaEvent_t record(int stream) {
    cudaEvent_t event;
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    events.push_back(event);
    OK(cudaEventRecord(event, streams[stream]));
    return event;
  }
  void wait(int stream, int other, cudaEvent_t event) {
    if (event != nullptr && other != stream) OK(cudaStreamWaitEvent(streams[stream], event, 0));
  }
  void read(int stream, int buffer) { wait(stream, uses[buffer].writer, uses[buffer].written); }
  void write(int stream, int buffer) {
    read(stream, buffer);
    for (auto& reader : uses[buffer].readers) wait(stream, reader.first, reader.second);
  }
  // One task, behind those whose memory it uses.
  void submit(const Task& task, int stream) {
    const bool reads = task.kind == Kind::kMix || task.kind == Kind::kCopy;
    for (int i = 0; reads && is_ordered && i < 2; ++i) read(stream, task.reads[i]);
    if (is_ordered) write(stream, task.writes);
    unsigned *const out = buffers.data[task.writes], *const x = buffers.data[task.reads[0]],
                    *const y = buffers.data[task.reads[1]];
    cudaStream_t const in = streams[stream];
    switch (task.kind) {
      case Kind::kMix:
        mix<<<4, 32, 0, in>>>(x == out ? y : x, y == out ? x : y, out, {task.value, 7},
                              x == out || y == out ? 0 : kSize);
        break;
      case Kind::kStep:
        step<<<2, 64, 0, in>>>(out, task.value, kSize);
        break;
      case Kind::kCopy:
        if (x != out) OK(cudaMemcpyAsync(out, x, kBytes / 2, cudaMemcpyDeviceToDevice, in));
        break;
      case Kind::kSet:
        OK(cudaMemsetAsync(out + task.value % 50, static_cast<int>(task.value), 40, in));
        break;
      case Kind::kHost:
        host_tasks.push_back(new HostTask{&buffers.counters[task.writes], task.value});
        OK(cudaLaunchHostFunc(in, call_host, host_tasks.back()));
        break;
    }
    OK(cudaGetLastError());
    const cudaEvent_t done = record(stream);
    for (int i = 0; reads && i < 2; ++i) uses[task.reads[i]].readers.push_back({stream, done});
    uses[task.writes].written = done;
    uses[task.writes].writer = stream;
    uses[task.writes].readers.clear();
  }
  void fork() {
    const cudaEvent_t begun = record(0);
    for (size_t i = 1; i < streams.size(); ++i) wait(static_cast<int>(i), 0, begun);
  }
  void join() {
    for (size_t i = 1; i < streams.size(); ++i)
      wait(0, static_cast<int>(i), record(static_cast<int>(i)));
    for (Uses& each : uses) each = Uses();
  }
};

static std::vector<unsigned> in_one_stream(const Program& program) {
  Run run(1);
  for (int turn = 0; turn < program.launches; ++turn)
    for (const Task& task : program.tasks) run.submit(task, 0);
  return run.buffers.get();
}

static std::vector<unsigned> in_streams(const Program& program) {
  Run run(kStreams);
  for (int turn = 0; turn < program.launches; ++turn) {
    run.fork();
    for (const Task& task : program.tasks) run.submit(task, task.stream);
    run.join();
  }
  return run.buffers.get();
}

static std::vector<unsigned> in_graph(const Program& program, bool is_ordered) {
  Run run(kStreams);
  run.is_ordered = is_ordered;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  OK(cudaStreamBeginCapture(run.streams[0], cudaStreamCaptureModeThreadLocal));
  run.fork();
  for (const Task& task : program.tasks) run.submit(task, task.stream);
  run.join();
  OK(cudaStreamEndCapture(run.streams[0], &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphDestroy(graph));
  for (int turn = 0; turn < program.launches; ++turn)
    OK(cudaGraphLaunch(exec, run.streams[turn % 2]));
  const std::vector<unsigned> values = run.buffers.get();
  OK(cudaGraphExecDestroy(exec));
  return values;
}

int main(int argc, char** argv) {
  const unsigned first = argc > 1 ? std::atoi(argv[1]) : 0,
                 count = argc > 2 ? std::atoi(argv[2]) : 10;
  if (argc == 2) {
    const Program program(first);
    in_graph(program, false);
    std::puts(collides(program) ? "collides" : "perhaps");
    return 0;
  }
  int wrong = 0;
  for (unsigned seed = first; seed < first + count; ++seed) {
    const Program program(seed);
    const std::vector<unsigned> wanted = in_one_stream(program);
    const bool eager = in_streams(program) == wanted, graph = in_graph(program, true) == wanted;
    unsigned sum = 0;
    for (unsigned value : wanted) sum = sum * 31 + value;
    std::printf("%u: %zu tasks, %d launches, sum %u, streams %s, graph %s\n", seed,
                program.tasks.size(), program.launches, sum, eager ? "right" : "wrong",
                graph ? "right" : "wrong");
    wrong += !eager || !graph;
  }
  return wrong != 0;
}
