// Shows: sums by warp shuffles: of warps, of blocks, of a grid with one atomic a block.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <numeric>
#include <cuda_runtime.h>

#define cudaSafeCall(call) { cudaError_t e = call; if (e != cudaSuccess) { \
    fprintf(stderr, "%s(%i): %s.\n", __FILE__, __LINE__, cudaGetErrorString(e)); exit(-1); } }

#define FULL_MASK 0xffffffff

__inline__ __device__ int warpReduceSum(int val)
{
    for (int offset = warpSize / 2; offset > 0; offset /= 2)
        val += __shfl_down_sync(FULL_MASK, val, offset);
    return val;
}

__inline__ __device__ int warpAllReduceSum(int val)
{
    for (int mask = warpSize / 2; mask > 0; mask /= 2)
        val += __shfl_xor_sync(FULL_MASK, val, mask);
    return val;
}

__inline__ __device__ int blockReduceSum(int val)
{
    static __shared__ int shared[32];
    int lane = threadIdx.x % warpSize;
    int wid = threadIdx.x / warpSize;
    val = warpReduceSum(val);
    if (lane == 0) shared[wid] = val;
    __syncthreads();
    val = (threadIdx.x < blockDim.x / warpSize) ? shared[lane] : 0;
    if (wid == 0) val = warpReduceSum(val);
    return val;
}

__global__ void deviceReduceKernel(const int *in, int *out, int N)
{
    int sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += blockDim.x * gridDim.x)
        sum += in[i];
    sum = blockReduceSum(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

__global__ void deviceReduceAtomic(const int *in, int *out, int N)
{
    int sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += blockDim.x * gridDim.x)
        sum += in[i];
    sum = blockReduceSum(sum);
    if (threadIdx.x == 0) atomicAdd(out, sum);
}

__global__ void deviceReduceWarpAtomic(const int4 *in, int *out, int N)
{
    int sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N / 4; i += blockDim.x * gridDim.x) {
        int4 val = in[i];
        sum += (val.x + val.y) + (val.z + val.w);
    }
    sum = warpAllReduceSum(sum);
    if ((threadIdx.x & (warpSize - 1)) == 0) atomicAdd(out, sum);
}

int main()
{
    const int N = 8192, threads = 256, blocks = 8;
    std::vector<int> h_in(N);
    for (int i = 0; i < N; i++) h_in[i] = (i * 131) % 97 - 40;
    const int gold = std::accumulate(h_in.begin(), h_in.end(), 0);

    int *d_in, *d_out, result[3] = {0, 0, 0};
    cudaSafeCall(cudaMalloc((void **)&d_in, N * sizeof(int)));
    cudaSafeCall(cudaMalloc((void **)&d_out, 1024 * sizeof(int)));
    cudaSafeCall(cudaMemcpy(d_in, &h_in[0], N * sizeof(int), cudaMemcpyHostToDevice));

    deviceReduceKernel<<<blocks, threads>>>(d_in, d_out, N);
    deviceReduceKernel<<<1, 32>>>(d_out, d_out, blocks);
    cudaSafeCall(cudaGetLastError());
    cudaSafeCall(cudaMemcpy(&result[0], d_out, sizeof(int), cudaMemcpyDeviceToHost));

    cudaSafeCall(cudaMemset(d_out, 0, sizeof(int)));
    deviceReduceAtomic<<<blocks, threads>>>(d_in, d_out, N);
    cudaSafeCall(cudaGetLastError());
    cudaSafeCall(cudaMemcpy(&result[1], d_out, sizeof(int), cudaMemcpyDeviceToHost));

    cudaSafeCall(cudaMemset(d_out, 0, sizeof(int)));
    deviceReduceWarpAtomic<<<blocks, threads>>>((const int4 *)d_in, d_out, N);
    cudaSafeCall(cudaGetLastError());
    cudaSafeCall(cudaMemcpy(&result[2], d_out, sizeof(int), cudaMemcpyDeviceToHost));

    bool ok = true;
    for (int r : result) {
        printf("GPU sum %d, CPU sum %d\n", r, gold);
        ok = ok && r == gold;
    }
    cudaSafeCall(cudaFree(d_in));
    cudaSafeCall(cudaFree(d_out));
    return ok ? 0 : 1;
}
