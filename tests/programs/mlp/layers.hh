#pragma once
#include "tensor.hh"

class Layer {
 public:
  virtual ~Layer() = default;
  virtual Tensor forward(const Tensor& x) = 0;
};

class Linear : public Layer {
 public:
  Linear(int in, int out);
  Tensor forward(const Tensor& x) override;

 private:
  Tensor weight, bias;
};

class ReLU : public Layer {
 public:
  Tensor forward(const Tensor& x) override;
};

class Sigmoid : public Layer {
 public:
  Tensor forward(const Tensor& x) override;
};

// What the weights are, on the host as well.
float initialWeight(int in, int out, int i, int j);
float initialBias(int j);
