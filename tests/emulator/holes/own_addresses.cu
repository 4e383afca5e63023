// Objects that keep their own addresses: they must begin where they lie.
#include "show.h"

struct Node {
  Node* next = this;
  int value = 0;
};

__global__ void by_member(int* out) {
  Node a;
  Node b = {}, c{&a, 5};
  const Node d = Node{&b, 7};
  a.value = b.value = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = (a.next == &a) + 2 * (b.next == &b) + 4 * (c.next == &a) + 8 * (d.next == &b);
  out[threadIdx.x] += 100 * (a.next->value + d.next->value + d.value);
}

CASE(member_that_is_this) {
  Device<int> out(33);
  by_member<<<1, 33>>>(out.data);
  show(out);
}

struct Cell {
  Cell* self;
  int value;
  __device__ Cell(int n) : self(this), value(n) {}
};

__global__ void by_constructor(int* out) {
  Cell cell(threadIdx.x), more[2] = {Cell(1), Cell(2)};
  __syncthreads();
  out[threadIdx.x] = cell.self->value + 100 * (cell.self == &cell) + 200 * (more[1].self == &more[1]);
}

CASE(constructor_that_keeps_this) {
  Device<int> out(33);
  by_constructor<<<1, 33>>>(out.data);
  show(out);
}

// What tells in which function it stands.
__global__ void named(int* out) {
  out[threadIdx.x] = sizeof(__func__) + 100 * sizeof(__PRETTY_FUNCTION__) + __func__[threadIdx.x % 4];
}

CASE(name_of_a_function) {
  Device<int> out(33);
  named<<<1, 33>>>(out.data);
  show(out);
}
