// Shows: pi by random points, with generators of one's own: an LCG and xorshift.
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define CHECK(x) do { if ((x) != cudaSuccess) { fprintf(stderr, "error at line %d\n", __LINE__); exit(1); } } while (0)

class Lcg {
    uint32_t state;
public:
    __host__ __device__ explicit Lcg(uint32_t seed) : state(seed * 747796405u + 2891336453u) {}
    __host__ __device__ uint32_t next() { state = state * 1664525u + 1013904223u; return state >> 8; }
};

class XorShift {
    uint32_t state;
public:
    __host__ __device__ explicit XorShift(uint32_t seed) : state(seed * 2654435761u ^ 0x9e3779b9u) {
        if (state == 0) state = 1;
        for (int i = 0; i < 4; i++) next();
    }
    __host__ __device__ uint32_t next() {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        return state >> 8;
    }
};

template <class Generator>
__host__ __device__ unsigned inside(uint32_t seed, int points)
{
    Generator random(seed);
    unsigned count = 0;
    for (int i = 0; i < points; i++) {
        uint64_t x = random.next(), y = random.next();
        if (x * x + y * y < (uint64_t)1 << 48) ++count;
    }
    return count;
}

template <class Generator>
__global__ void monte_carlo(unsigned long long *total, int points)
{
    __shared__ unsigned counts[128];
    counts[threadIdx.x] = inside<Generator>(blockIdx.x * blockDim.x + threadIdx.x, points);
    __syncthreads();
    for (int i = blockDim.x / 2; i; i >>= 1) {
        if (threadIdx.x < i) counts[threadIdx.x] += counts[threadIdx.x + i];
        __syncthreads();
    }
    if (!threadIdx.x) atomicAdd(total, (unsigned long long)counts[0]);
}

template <class Generator>
static int run(const char *name, unsigned long long *d_total)
{
    const int blocks = 10, threads = 128, points = 40;
    unsigned long long total = 0, gold = 0;
    CHECK(cudaMemset(d_total, 0, sizeof(total)));
    monte_carlo<Generator><<<blocks, threads>>>(d_total, points);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&total, d_total, sizeof(total), cudaMemcpyDeviceToHost));
    for (int i = 0; i < blocks * threads; i++) gold += inside<Generator>(i, points);
    double pi = 4.0 * total / (blocks * threads * points);
    printf("%s: %llu inside, pi is about %.2f\n", name, total, pi);
    return total != gold || pi < 3 || pi > 3.3;
}

int main()
{
    unsigned long long *d_total;
    CHECK(cudaMalloc(&d_total, sizeof(*d_total)));
    int failed = run<Lcg>("LCG", d_total) + run<XorShift>("xorshift", d_total);
    CHECK(cudaFree(d_total));
    return failed;
}
