// Shows: attention of several heads with a causal mask: scores, softmax, weighted sum.
#include <stdio.h>
#include <stdlib.h>
#include <float.h>
#include <math.h>
#include <vector>
#include <cuda_runtime.h>
#include "headers/error_check.h"

// q, k, v and out are (heads, T, D), scores are (heads, T, T).
__global__ void attention_query_key(float *scores, const float *q, const float *k, int heads, int T, int D)
{
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    int t2 = idx % T, t = (idx / T) % T, h = idx / (T * T);
    if (h >= heads) return;
    if (t2 > t) {
        scores[idx] = -INFINITY; // the future is hidden
        return;
    }
    float val = 0.0f;
    for (int i = 0; i < D; i++) val += q[(h * T + t) * D + i] * k[(h * T + t2) * D + i];
    scores[idx] = val / sqrtf((float)D);
}

__global__ void attention_softmax(float *scores, int T, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float *s = scores + row * T;
    const int own_pos = row % T;
    float maxval = -FLT_MAX, sum = 0.0f;
    for (int i = 0; i <= own_pos; i++)
        if (s[i] > maxval) maxval = s[i];
    for (int i = 0; i <= own_pos; i++) {
        s[i] = expf(s[i] - maxval);
        sum += s[i];
    }
    for (int i = 0; i < T; i++) s[i] = i <= own_pos ? s[i] / sum : 0.0f;
}

__global__ void attention_value(float *out, const float *att, const float *v, int T, int D)
{
    extern __shared__ float weights[];
    const int t = blockIdx.x, h = blockIdx.y;
    for (int i = threadIdx.x; i < T; i += blockDim.x) weights[i] = att[(h * T + t) * T + i];
    __syncthreads();
    for (int d = threadIdx.x; d < D; d += blockDim.x) {
        float sum = 0;
        for (int i = 0; i <= t; i++) sum += weights[i] * v[(h * T + i) * D + d];
        out[(h * T + t) * D + d] = sum;
    }
}

int main()
{
    const int heads = 3, T = 24, D = 20, n = heads * T * D;
    std::vector<float> q(n), k(n), v(n), out(n);
    for (int i = 0; i < n; i++) {
        q[i] = sinf(0.3f * i);
        k[i] = cosf(0.2f * i);
        v[i] = (float)(i % 13) - 6;
    }
    float *d_q, *d_k, *d_v, *d_s, *d_out;
    checkCudaErrors(cudaMalloc(&d_q, n * sizeof(float)));
    checkCudaErrors(cudaMalloc(&d_k, n * sizeof(float)));
    checkCudaErrors(cudaMalloc(&d_v, n * sizeof(float)));
    checkCudaErrors(cudaMalloc(&d_out, n * sizeof(float)));
    checkCudaErrors(cudaMalloc(&d_s, heads * T * T * sizeof(float)));
    checkCudaErrors(cudaMemcpy(d_q, q.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    checkCudaErrors(cudaMemcpy(d_k, k.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    checkCudaErrors(cudaMemcpy(d_v, v.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    attention_query_key<<<(heads * T * T + 255) / 256, 256>>>(d_s, d_q, d_k, heads, T, D);
    attention_softmax<<<(heads * T + 31) / 32, 32>>>(d_s, T, heads * T);
    attention_value<<<dim3(T, heads), 32, T * sizeof(float)>>>(d_out, d_s, d_v, T, D);
    getLastCudaError("attention");
    checkCudaErrors(cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));

    double worst = 0;
    for (int h = 0; h < heads; h++)
        for (int t = 0; t < T; t++) {
            std::vector<double> w(t + 1);
            double total = 0;
            for (int s = 0; s <= t; s++) {
                double dot = 0;
                for (int d = 0; d < D; d++) dot += q[(h * T + t) * D + d] * k[(h * T + s) * D + d];
                total += w[s] = exp(dot / sqrt((double)D));
            }
            for (int d = 0; d < D; d++) {
                double sum = 0;
                for (int s = 0; s <= t; s++) sum += w[s] / total * v[(h * T + s) * D + d];
                worst = fmax(worst, fabs(sum - out[(h * T + t) * D + d]));
            }
        }
    printf("attention of %d heads over %d steps: %s\n", heads, T, worst < 1e-4 ? "right" : "WRONG");
    checkCudaErrors(cudaFree(d_q));
    checkCudaErrors(cudaFree(d_k));
    checkCudaErrors(cudaFree(d_v));
    checkCudaErrors(cudaFree(d_s));
    checkCudaErrors(cudaFree(d_out));
    return !(worst < 1e-4);
}
