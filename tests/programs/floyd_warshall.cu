// Shows: all shortest paths, a launch for each vertex, with 2-D blocks and a row in shared memory.
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define V 70
#define FAR 1000000
#define SAFE(call) do { cudaError_t status = call; if (status != cudaSuccess) { \
    fprintf(stderr, "%s failed: %s\n", #call, cudaGetErrorString(status)); exit(1); } } while (0)

__global__ void relax(int *dist, int *via, int k)
{
    __shared__ int toK[8];
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (threadIdx.x == 0 && i < V) toK[threadIdx.y] = dist[i * V + k];
    __syncthreads();
    if (i >= V || j >= V || i == k || j == k) return;
    int through = toK[threadIdx.y] + dist[k * V + j];
    if (through < dist[i * V + j]) {
        dist[i * V + j] = through;
        via[i * V + j] = k;
    }
}

int main()
{
    static int dist[V * V], gold[V * V], result[V * V], via[V * V];
    for (int i = 0; i < V; i++)
        for (int j = 0; j < V; j++) {
            bool edge = (i * 13 + j * 7) % 11 == 0 || j == i + 1;
            gold[i * V + j] = dist[i * V + j] = i == j ? 0 : edge ? 1 + (i * j) % 29 : FAR;
        }
    int *d_dist, *d_via;
    SAFE(cudaMalloc((void **)&d_dist, sizeof(dist)));
    SAFE(cudaMalloc((void **)&d_via, sizeof(via)));
    SAFE(cudaMemcpy(d_dist, dist, sizeof(dist), cudaMemcpyHostToDevice));
    SAFE(cudaMemset(d_via, 0xff, sizeof(via)));
    dim3 block(32, 8), grid((V + 31) / 32, (V + 7) / 8);
    for (int k = 0; k < V; k++) relax<<<grid, block>>>(d_dist, d_via, k);
    SAFE(cudaGetLastError());
    SAFE(cudaMemcpy(result, d_dist, sizeof(result), cudaMemcpyDeviceToHost));
    SAFE(cudaMemcpy(via, d_via, sizeof(via), cudaMemcpyDeviceToHost));

    for (int k = 0; k < V; k++)
        for (int i = 0; i < V; i++)
            for (int j = 0; j < V; j++)
                if (gold[i * V + k] + gold[k * V + j] < gold[i * V + j]) gold[i * V + j] = gold[i * V + k] + gold[k * V + j];
    int wrong = 0, longest = 0, indirect = 0;
    for (int i = 0; i < V * V; i++) {
        wrong += result[i] != gold[i];
        if (result[i] < FAR && result[i] > longest) longest = result[i];
        indirect += via[i] >= 0;
        wrong += via[i] < 0 && result[i] != dist[i];
    }
    printf("longest path %d, %d pairs by others, %d wrong\n", longest, indirect, wrong);
    SAFE(cudaFree(d_dist));
    SAFE(cudaFree(d_via));
    return wrong != 0;
}
