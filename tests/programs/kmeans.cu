// Shows: k-means: labels by a kernel with centroids in shared memory, sums by atomics, a mean.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#include "headers/error_check.h"

#define N 2000
#define K 4
#define TPB 64
#define MAX_ITER 8

// Whole coordinates make sums exact in any order.
__device__ int distance2(int x1, int y1, int x2, int y2) { return (x2 - x1) * (x2 - x1) + (y2 - y1) * (y2 - y1); }

__global__ void assignClusters(const int2 *points, int *labels, const int2 *centroids)
{
    __shared__ int2 shared[K];
    if (threadIdx.x < K) shared[threadIdx.x] = centroids[threadIdx.x];
    __syncthreads();
    const int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx >= N) return;
    int best = distance2(points[idx].x, points[idx].y, shared[0].x, shared[0].y), label = 0;
    for (int c = 1; c < K; ++c) {
        int dist = distance2(points[idx].x, points[idx].y, shared[c].x, shared[c].y);
        if (dist < best) {
            best = dist;
            label = c;
        }
    }
    labels[idx] = label;
}

__global__ void sumClusters(const int2 *points, const int *labels, int *sumX, int *sumY, int *count)
{
    __shared__ int s_x[K], s_y[K], s_n[K];
    if (threadIdx.x < K) s_x[threadIdx.x] = s_y[threadIdx.x] = s_n[threadIdx.x] = 0;
    __syncthreads();
    const int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < N) {
        const int id = labels[idx];
        atomicAdd(&s_x[id], points[idx].x);
        atomicAdd(&s_y[id], points[idx].y);
        atomicAdd(&s_n[id], 1);
    }
    __syncthreads();
    if (threadIdx.x < K) {
        atomicAdd(&sumX[threadIdx.x], s_x[threadIdx.x]);
        atomicAdd(&sumY[threadIdx.x], s_y[threadIdx.x]);
        atomicAdd(&count[threadIdx.x], s_n[threadIdx.x]);
    }
}

__global__ void moveCentroids(int2 *centroids, const int *sums)
{
    int c = threadIdx.x;
    if (c < K && sums[2 * K + c] > 0)
        centroids[c] = make_int2(sums[c] / sums[2 * K + c], sums[K + c] / sums[2 * K + c]);
}

static void stepOnHost(const std::vector<int2> &points, int2 *centroids)
{
    int sums[3][K] = {};
    for (int2 p : points) {
        int label = 0, best = 1 << 30;
        for (int c = 0; c < K; ++c) {
            int dx = p.x - centroids[c].x, dy = p.y - centroids[c].y;
            if (dx * dx + dy * dy < best) best = dx * dx + dy * dy, label = c;
        }
        sums[0][label] += p.x, sums[1][label] += p.y, sums[2][label]++;
    }
    for (int c = 0; c < K; ++c)
        if (sums[2][c]) centroids[c] = make_int2(sums[0][c] / sums[2][c], sums[1][c] / sums[2][c]);
}

int main()
{
    std::vector<int2> points(N);
    for (int i = 0; i < N; ++i) {
        points[i].x = 1000 * (i % 2) + (i * 37) % 301;
        points[i].y = 900 * (i / 2 % 2) + (i * 53) % 257;
    }
    int2 gold[K], result[K];
    for (int c = 0; c < K; ++c) gold[c] = points[c * 11];
    int2 *d_points, *d_centroids;
    int *d_labels, *d_sums;
    checkCudaErrors(cudaMalloc(&d_points, N * sizeof(int2)));
    checkCudaErrors(cudaMalloc(&d_centroids, K * sizeof(int2)));
    checkCudaErrors(cudaMalloc(&d_labels, N * sizeof(int)));
    checkCudaErrors(cudaMalloc(&d_sums, 3 * K * sizeof(int)));
    checkCudaErrors(cudaMemcpy(d_points, points.data(), N * sizeof(int2), cudaMemcpyHostToDevice));
    checkCudaErrors(cudaMemcpy(d_centroids, gold, sizeof(gold), cudaMemcpyHostToDevice));
    for (int iter = 0; iter < MAX_ITER; ++iter) {
        checkCudaErrors(cudaMemset(d_sums, 0, 3 * K * sizeof(int)));
        assignClusters<<<(N + TPB - 1) / TPB, TPB>>>(d_points, d_labels, d_centroids);
        sumClusters<<<(N + TPB - 1) / TPB, TPB>>>(d_points, d_labels, d_sums, d_sums + K, d_sums + 2 * K);
        moveCentroids<<<1, 32>>>(d_centroids, d_sums);
        getLastCudaError("k-means");
        stepOnHost(points, gold);
    }
    checkCudaErrors(cudaMemcpy(result, d_centroids, sizeof(result), cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int c = 0; c < K; ++c) {
        printf("centroid %d: (%d, %d)\n", c, result[c].x, result[c].y);
        wrong += result[c].x != gold[c].x || result[c].y != gold[c].y;
    }
    checkCudaErrors(cudaFree(d_points));
    checkCudaErrors(cudaFree(d_centroids));
    checkCudaErrors(cudaFree(d_labels));
    checkCudaErrors(cudaFree(d_sums));
    return wrong != 0;
}
