// Shows: ballots, any and all, population counts; a filter that keeps the order inside of warps.
#include <cuda_runtime.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call) do { cudaError_t e = call; if (e != cudaSuccess) { \
    printf("%s: %s\n", #call, cudaGetErrorString(e)); exit(1); } } while (false)

__device__ __forceinline__ unsigned int lane_id() { return threadIdx.x & 31; }

__global__ void votes(const int *x, unsigned *ballots, int *flags)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned full = 0xffffffffu;
    const unsigned odd = __ballot_sync(full, x[i] & 1);
    const int any = __any_sync(full, x[i] > 95), all = __all_sync(full, x[i] < 98);
    const unsigned active = __activemask();
    if (lane_id() == 0) {
        ballots[i / 32] = odd;
        flags[i / 32] = (any != 0) | (all != 0) << 1 | (active == full) << 2;
    }
}

__global__ void filter_k(int *dst, int *nres, const int *src, int n)
{
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    int value = i < n ? src[i] : -1;
    unsigned mask = __ballot_sync(0xffffffffu, value > 0);
    int leader = __ffs(mask) - 1, base = 0;
    if ((int)lane_id() == leader) base = atomicAdd(nres, __popc(mask));
    if (mask == 0) return;  // the whole warp
    base = __shfl_sync(0xffffffffu, base, leader);
    if (value > 0) dst[base + __popc(mask & ((1u << lane_id()) - 1))] = value;
}

// The position of the first match in the block, by leading zeros.
__global__ void reverseBits(const unsigned *in, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __brev(in[i]) ^ (unsigned)(__clz(in[i]) << 16);
}

int main()
{
    const int n = 512, warps = n / 32;
    std::vector<int> x(n), result(n), flags(warps), positive;
    std::vector<unsigned> ballots(warps), reversed(warps);
    for (int i = 0; i < n; i++) x[i] = (i * 57) % 99;
    for (int i = 64; i < 96; i++) x[i] = 0;
    int *d_x, *d_out, *d_n, *d_flags, count = 0, wrong = 0;
    unsigned *d_ballots, *d_reversed;
    CHECK(cudaMalloc(&d_x, n * sizeof(int)));
    CHECK(cudaMalloc(&d_out, n * sizeof(int)));
    CHECK(cudaMalloc(&d_n, sizeof(int)));
    CHECK(cudaMalloc(&d_flags, warps * sizeof(int)));
    CHECK(cudaMalloc(&d_ballots, warps * sizeof(unsigned)));
    CHECK(cudaMalloc(&d_reversed, warps * sizeof(unsigned)));
    CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_n, 0, sizeof(int)));
    votes<<<n / 128, 128>>>(d_x, d_ballots, d_flags);
    filter_k<<<n / 128, 128>>>(d_out, d_n, d_x, n - 9);
    reverseBits<<<1, 32>>>(d_ballots, d_reversed, warps);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(ballots.data(), d_ballots, warps * sizeof(unsigned), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(reversed.data(), d_reversed, warps * sizeof(unsigned), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(flags.data(), d_flags, warps * sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&count, d_n, sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(result.data(), d_out, count * sizeof(int), cudaMemcpyDeviceToHost));

    for (int w = 0; w < warps; w++) {
        unsigned odd = 0, mirrored = 0;
        int any = 0, all = 1, zeros = 0;
        for (int l = 0; l < 32; l++) {
            odd |= (unsigned)(x[w * 32 + l] & 1) << l;
            any |= x[w * 32 + l] > 95;
            all &= x[w * 32 + l] < 98;
        }
        for (int b = 0; b < 32; b++) mirrored |= (odd >> b & 1u) << (31 - b);
        while (zeros < 32 && !(odd >> (31 - zeros) & 1u)) zeros++;
        wrong += ballots[w] != odd || flags[w] != (any | all << 1 | 4);
        wrong += reversed[w] != (mirrored ^ (unsigned)(zeros << 16));
    }
    for (int i = 0; i < n - 9; i++)
        if (x[i] > 0) positive.push_back(x[i]);
    result.resize(count);
    std::sort(result.begin(), result.end());
    std::sort(positive.begin(), positive.end());
    wrong += result != positive;
    printf("%d values kept, %d wrong\n", count, wrong);
    for (void *p : {(void *)d_x, (void *)d_out, (void *)d_n, (void *)d_flags, (void *)d_ballots, (void *)d_reversed}) CHECK(cudaFree(p));
    return wrong != 0;
}
