// Shows: a first kernel; every thread says hello, one after another.
#include <stdio.h>
#include <cuda_runtime.h>

__global__ void helloFromThread()
{
    for (int turn = 0; turn < (int)blockDim.x; turn++) {
        if (threadIdx.x == turn)
            printf("Hello from block %d of %d, thread %d of %d!\n", blockIdx.x, gridDim.x,
                   threadIdx.x, blockDim.x);
        __syncthreads();
    }
}

__global__ void whoAmI(int *id)
{
    int block = blockIdx.x + blockIdx.y * gridDim.x;
    int thread = threadIdx.x + threadIdx.y * blockDim.x + threadIdx.z * blockDim.x * blockDim.y;
    id[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}

int main(void)
{
    printf("Hello from the CPU!\n");
    helloFromThread<<<1, 5>>>();
    cudaError_t err = cudaGetLastError();
    if (err != cudaSuccess) {
        fprintf(stderr, "launch failed: %s\n", cudaGetErrorString(err));
        return 1;
    }
    cudaDeviceSynchronize();

    dim3 grid(3, 2), block(4, 2, 3);
    const int total = 3 * 2 * 4 * 2 * 3;
    int *d_id, h_id[total];
    if (cudaMalloc((void **)&d_id, total * sizeof(int)) != cudaSuccess) return 1;
    whoAmI<<<grid, block>>>(d_id);
    if (cudaGetLastError() != cudaSuccess) return 1;
    if (cudaMemcpy(h_id, d_id, sizeof(h_id), cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
    int wrong = 0;
    for (int i = 0; i < total; i++)
        if (h_id[i] != i / 24 * 1000 + i % 24) wrong++;
    printf("%d threads gave their number, %d of them wrong\n", total, wrong);
    cudaFree(d_id);
    cudaDeviceReset();
    return wrong != 0;
}
