// Shows: a multi-layer perceptron forward, as classes over several files.
#include <cmath>
#include <cstdio>
#include <string>
#include "layers.hh"

static std::vector<double> onHost(std::vector<double> x, int rows, int in, int out, bool last) {
  std::vector<double> y(rows * out);
  for (int r = 0; r < rows; ++r)
    for (int j = 0; j < out; ++j) {
      double sum = initialBias(j);
      for (int i = 0; i < in; ++i) sum += x[r * in + i] * initialWeight(in, out, i, j);
      y[r * out + j] = last ? 1 / (1 + std::exp(-sum)) : std::fmax(sum, 0.0);
    }
  return y;
}

int main() {
  try {
    const int rows = 21, sizes[4] = {50, 40, 30, 10};
    std::vector<float> input(rows * sizes[0]);
    for (size_t i = 0; i < input.size(); ++i) input[i] = std::sin(0.1f * i);
    std::vector<std::unique_ptr<Layer>> network;
    for (int i = 0; i < 3; ++i) {
      network.emplace_back(new Linear(sizes[i], sizes[i + 1]));
      if (i < 2)
        network.emplace_back(new ReLU);
      else
        network.emplace_back(new Sigmoid);
    }
    Tensor x(rows, sizes[0], input);
    for (auto& layer : network) x = layer->forward(x);
    const std::vector<float> result = x.values();

    std::vector<double> gold(input.begin(), input.end());
    for (int i = 0; i < 3; ++i) gold = onHost(gold, rows, sizes[i], sizes[i + 1], i == 2);
    int wrong = 0;
    for (size_t i = 0; i < gold.size(); ++i) wrong += !(std::fabs(gold[i] - result[i]) < 1e-5);
    std::printf("%d x %d outputs, %d wrong\n", x.rows, x.cols, wrong);
    return wrong != 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
