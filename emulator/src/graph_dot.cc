/*!
 * \file graph_dot.cc
 * \brief Pictures of graphs, in the language of Graphviz.
 */
#include <cstdio>
#include <string>

#include "error.h"
#include "graph.h"
#include "kernel_call.h"

namespace emulator {
namespace {

std::string quoted(const std::string& text) {
  std::string out;
  for (char letter : text) {
    if (letter == '\n') {
      out += "\\n";
      continue;
    }
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out;
}

std::string sizes(const dim3& size) {
  return std::to_string(size.x) + "," + std::to_string(size.y) + "," + std::to_string(size.z);
}

std::string label_of(const NodeWork& work, bool with_parameters) {
  std::string label = work.label;
  if (with_parameters && work.kernel != nullptr) {
    const Config& config = work.kernel->config();
    label += "\n<<<" + sizes(config.grid) + "; " + sizes(config.block) + "; " +
             std::to_string(config.shared) + ">>>";
  }
  return label;
}

void print(cudaGraph_t graph, bool with_parameters, std::FILE* file) {
  std::fprintf(file, "digraph dot {\n");
  size_t number = 0;
  const auto name = [&](cudaGraphNode_t node) {
    size_t i = 0;
    while (graph->nodes[i].get() != node) ++i;
    return i;
  };
  for (const auto& node : graph->nodes) {
    const char* shape = node->work->type == cudaGraphNodeTypeKernel ? "octagon" : "box";
    std::fprintf(file, "  node_%zu [shape=\"%s\" label=\"%zu\\n%s\"];\n", number, shape, number,
                 quoted(label_of(*node->work, with_parameters)).c_str());
    ++number;
  }
  for (const auto& node : graph->nodes)
    for (cudaGraphNode_t before : node->dependencies)
      std::fprintf(file, "  node_%zu -> node_%zu;\n", name(before), name(node.get()));
  std::fprintf(file, "}\n");
}

}  // namespace
}  // namespace emulator

using emulator::report;

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned flags) {
  EMULATOR_RETURN_IF_STICKY();
  std::lock_guard<std::recursive_mutex> lock(emulator::graphs_mutex());
  if (path == nullptr || !emulator::is_graph(graph)) return report(cudaErrorInvalidValue);
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return report(cudaErrorOperatingSystem);
  const unsigned all = cudaGraphDebugDotFlagsVerbose | cudaGraphDebugDotFlagsKernelNodeParams;
  emulator::print(graph, (flags & all) != 0, file);
  std::fclose(file);
  return cudaSuccess;
}
