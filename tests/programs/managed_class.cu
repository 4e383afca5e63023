// Shows: a base class that allocates managed memory, and a linked list that both sides walk.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <cuda_runtime.h>
#include "headers/error_check.h"

class Managed {
 public:
  void *operator new(size_t len) {
    void *ptr;
    checkCudaErrors(cudaMallocManaged(&ptr, len));
    checkCudaErrors(cudaDeviceSynchronize());
    return ptr;
  }
  void operator delete(void *ptr) {
    checkCudaErrors(cudaDeviceSynchronize());
    checkCudaErrors(cudaFree(ptr));
  }
};

class Text : public Managed {
 public:
  explicit Text(const char *s) : length_(strlen(s)) {
    checkCudaErrors(cudaMallocManaged(&data_, length_ + 1));
    memcpy(data_, s, length_ + 1);
  }
  Text(const Text &) = delete;
  ~Text() { cudaFree(data_); }
  __host__ __device__ char &operator[](int i) { return data_[i]; }
  __host__ __device__ int length() const { return length_; }
  const char *c_str() const { return data_; }

 private:
  int length_;
  char *data_ = nullptr;
};

struct Node : public Managed {
  int value;
  Node *next;
  Node(int value, Node *next) : value(value), next(next) {}
};

__device__ __managed__ int visits = 5;

__global__ void rot13(Text *text)
{
    for (int i = threadIdx.x; i < text->length(); i += blockDim.x) {
        char &c = (*text)[i];
        if (c >= 'a' && c <= 'z') c = (c - 'a' + 13) % 26 + 'a';
        if (c >= 'A' && c <= 'Z') c = (c - 'A' + 13) % 26 + 'A';
    }
}

__global__ void squareAll(Node *head)
{
    for (Node *n = head; n != nullptr; n = n->next) {
        n->value *= n->value;
        visits++;
    }
}

int main()
{
    Text *text = new Text("Guvf vf n zrffntr sebz gur TCH.");
    rot13<<<1, 16>>>(text);
    checkCudaErrors(cudaGetLastError());
    checkCudaErrors(cudaDeviceSynchronize());
    printf("%s\n", text->c_str());
    bool good = std::string(text->c_str()) == "This is a message from the GPU.";
    delete text;

    Node *head = nullptr;
    for (int i = 1; i <= 10; i++) head = new Node(i, head);
    squareAll<<<1, 1>>>(head);
    checkCudaErrors(cudaGetLastError());
    checkCudaErrors(cudaDeviceSynchronize());
    int sum = 0;
    while (head != nullptr) {
        Node *next = head->next;
        sum += head->value;
        delete head;
        head = next;
    }
    printf("sum of squares %d, %d visits\n", sum, visits);
    return !(good && sum == 385 && visits == 15);
}
