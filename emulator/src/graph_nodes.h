/*!
 * \file graph_nodes.h
 * \brief The work of nodes that the program makes by hand.
 */
#ifndef EMULATOR_GRAPH_NODES_H_
#define EMULATOR_GRAPH_NODES_H_

#include "graph.h"

namespace emulator {

cudaError_t make_kernel_work(const cudaKernelNodeParams* params, const char* file, int line,
                             NodeWork* work);
cudaError_t make_copy_work(void* to, const void* from, size_t size, cudaMemcpyKind kind,
                           NodeWork* work);
cudaError_t make_fill_work(const cudaMemsetParams* params, NodeWork* work);
cudaError_t make_host_work(const cudaHostNodeParams* params, NodeWork* work);

/*! \brief A launch with its arguments. */
NodeWork work_of_kernel(std::shared_ptr<const KernelCall> call);
/*! \brief A function of the host, which a stream calls. */
NodeWork work_of_host(cudaHostFn_t function, void* data);
NodeWork work_of_record(cudaEvent_t event);
NodeWork work_of_wait(cudaEvent_t event);
NodeWork work_of_allocation(std::shared_ptr<GraphMemory> memory);
NodeWork work_of_free(std::shared_ptr<GraphMemory> memory);

}  // namespace emulator

#endif  // EMULATOR_GRAPH_NODES_H_
