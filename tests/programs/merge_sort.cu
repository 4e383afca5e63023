// Shows: merge sort from the bottom up; each element finds its place by a binary search.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <cuda_runtime.h>

#define N 2500
#define THREADS 128

typedef struct { int key; int from; } record;

static void die(const char *what, cudaError_t e)
{
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
    exit(2);
}
#define TRY(call) do { cudaError_t e = call; if (e) die(#call, e); } while (0)

// How many of a[0..n) come before the key; equal ones count if `equal` says so.
__device__ int rank_of(const record *a, int n, int key, bool equal)
{
    int low = 0, high = n;
    while (low < high) {
        int mid = (low + high) / 2;
        if (a[mid].key < key || (equal && a[mid].key == key))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

__global__ void merge_pass(const record *in, record *out, int n, int width)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int pair = i / (2 * width) * (2 * width);
    int middle = min(pair + width, n), end = min(pair + 2 * width, n);
    record mine = in[i];
    int place;
    if (i < middle)
        place = i + rank_of(in + middle, end - middle, mine.key, false);
    else
        place = i - middle + pair + rank_of(in + pair, middle - pair, mine.key, true);
    out[place] = mine;
}

int main(void)
{
    record *h = (record *)malloc(N * sizeof(record)), *d_a, *d_b;
    srand(7);
    for (int i = 0; i < N; i++) {
        h[i].key = rand() % 500;
        h[i].from = i;
    }
    TRY(cudaMalloc((void **)&d_a, N * sizeof(record)));
    TRY(cudaMalloc((void **)&d_b, N * sizeof(record)));
    TRY(cudaMemcpy(d_a, h, N * sizeof(record), cudaMemcpyHostToDevice));
    int passes = 0;
    for (int width = 1; width < N; width *= 2) {
        merge_pass<<<(N + THREADS - 1) / THREADS, THREADS>>>(d_a, d_b, N, width);
        TRY(cudaGetLastError());
        record *t = d_a;
        d_a = d_b;
        d_b = t;
        passes++;
    }
    record *result = (record *)malloc(N * sizeof(record));
    TRY(cudaMemcpy(result, d_a, N * sizeof(record), cudaMemcpyDeviceToHost));

    int wrong = 0;
    for (int i = 0; i < N; i++) {
        if (h[result[i].from].key != result[i].key) wrong++;
        if (i == 0) continue;
        if (result[i - 1].key > result[i].key) wrong++;
        if (result[i - 1].key == result[i].key && result[i - 1].from > result[i].from) wrong++;
    }
    printf("%d records in %d passes: %s\n", N, passes, wrong ? "NOT sorted" : "sorted, and stable");
    TRY(cudaFree(d_a));
    TRY(cudaFree(d_b));
    free(h);
    free(result);
    return wrong != 0;
}
