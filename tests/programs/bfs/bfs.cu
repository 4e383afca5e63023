// Shows: a breadth-first search by frontiers, which blocks collect in shared memory first.
#include <stdio.h>
#include <cuda_runtime.h>
#include "graph.h"
#include "../headers/error_check.h"

#define LOCAL_CAPACITY 64

__global__ void bfsFrontier(Graph g, int *level, const int *prev, int *curr, int numPrev, int *numCurr, int depth)
{
    __shared__ int local[LOCAL_CAPACITY];
    __shared__ int numLocal;
    __shared__ int start;
    if (threadIdx.x == 0) numLocal = 0;
    __syncthreads();

    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < numPrev) {
        int vertex = prev[i];
        for (int edge = g.first[vertex]; edge < g.first[vertex + 1]; edge++) {
            int w = g.neighbour[edge];
            if (atomicCAS(&level[w], -1, depth) == -1) {
                int place = atomicAdd(&numLocal, 1);
                if (place < LOCAL_CAPACITY) {
                    local[place] = w;
                } else {
                    curr[atomicAdd(numCurr, 1)] = w;
                }
            }
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        if (numLocal > LOCAL_CAPACITY) numLocal = LOCAL_CAPACITY;
        start = atomicAdd(numCurr, numLocal);
    }
    __syncthreads();
    for (int j = threadIdx.x; j < numLocal; j += blockDim.x) curr[start + j] = local[j];
}

int main()
{
    const int vertices = 1500, source = 1;
    Graph g = makeGraph(vertices, 99), dev = g;
    checkCudaErrors(cudaMalloc(&dev.first, (vertices + 1) * sizeof(int)));
    checkCudaErrors(cudaMalloc(&dev.neighbour, g.edges * sizeof(int)));
    checkCudaErrors(cudaMemcpy(dev.first, g.first, (vertices + 1) * sizeof(int), cudaMemcpyHostToDevice));
    checkCudaErrors(cudaMemcpy(dev.neighbour, g.neighbour, g.edges * sizeof(int), cudaMemcpyHostToDevice));
    int *level, *frontier[2], *counter, zero = 0;
    checkCudaErrors(cudaMalloc(&level, vertices * sizeof(int)));
    checkCudaErrors(cudaMalloc(&frontier[0], vertices * sizeof(int)));
    checkCudaErrors(cudaMalloc(&frontier[1], vertices * sizeof(int)));
    checkCudaErrors(cudaMalloc(&counter, sizeof(int)));
    checkCudaErrors(cudaMemset(level, -1, vertices * sizeof(int)));
    checkCudaErrors(cudaMemcpy(level + source, &zero, sizeof(int), cudaMemcpyHostToDevice));
    checkCudaErrors(cudaMemcpy(frontier[0], &source, sizeof(int), cudaMemcpyHostToDevice));

    int count = 1, depth = 0;
    while (count > 0) {
        depth++;
        checkCudaErrors(cudaMemset(counter, 0, sizeof(int)));
        bfsFrontier<<<(count + 127) / 128, 128>>>(dev, level, frontier[(depth + 1) % 2], frontier[depth % 2], count, counter, depth);
        getLastCudaError("bfsFrontier");
        checkCudaErrors(cudaMemcpy(&count, counter, sizeof(int), cudaMemcpyDeviceToHost));
    }

    int *ours = (int *)malloc(vertices * sizeof(int)), *gold = (int *)malloc(vertices * sizeof(int));
    checkCudaErrors(cudaMemcpy(ours, level, vertices * sizeof(int), cudaMemcpyDeviceToHost));
    levelsOnHost(&g, source, gold);
    int wrong = 0, reached = 0;
    for (int v = 0; v < vertices; v++) {
        wrong += ours[v] != gold[v];
        reached += ours[v] >= 0;
    }
    printf("%d of %d vertices reached in %d levels, %d wrong\n", reached, vertices, depth, wrong);
    checkCudaErrors(cudaFree(dev.first));
    checkCudaErrors(cudaFree(dev.neighbour));
    checkCudaErrors(cudaFree(level));
    checkCudaErrors(cudaFree(frontier[0]));
    checkCudaErrors(cudaFree(frontier[1]));
    checkCudaErrors(cudaFree(counter));
    freeGraph(&g);
    free(ours);
    free(gold);
    return wrong != 0;
}
