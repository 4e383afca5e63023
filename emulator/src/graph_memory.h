/*!
 * \file graph_memory.h
 * \brief Memory that a graph allocates when it is launched, at an address that it always has.
 */
#ifndef EMULATOR_GRAPH_MEMORY_H_
#define EMULATOR_GRAPH_MEMORY_H_

#include <cstddef>
#include <memory>

#include "cuda_runtime_api.h"

namespace emulator {

/*! \brief An allocation of a node. Its pages are kept as long as a graph names them. */
class GraphMemory {
 public:
  /*! \brief Null if there is not so much memory. */
  static std::shared_ptr<GraphMemory> make(size_t size);
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  void operator=(const GraphMemory&) = delete;

  void* address() const { return address_; }
  size_t size() const { return size_; }
  /*! \brief Whether a graph has allocated it, and nobody freed it since. */
  bool is_live() const { return live_; }
  cudaError_t allocate();
  cudaError_t free();

 private:
  GraphMemory(void* address, size_t size) : address_(address), size_(size) {}

  void* const address_;
  const size_t size_;
  bool live_ = false;
};

/*! \brief The memory of a graph that begins at an address, or null. */
std::shared_ptr<GraphMemory> find_graph_memory(const void* ptr);
/*! \brief Bytes that graphs have allocated, and the most that they had. */
size_t graph_memory_used();
size_t graph_memory_most();
size_t graph_memory_reserved();
void forget_most_graph_memory();

}  // namespace emulator

#endif  // EMULATOR_GRAPH_MEMORY_H_
