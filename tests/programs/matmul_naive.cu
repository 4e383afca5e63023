// Shows: a product of matrices, one thread an element, in the two orders of indices.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cuda_runtime.h>

#define CUDA_CALL(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("Error %s at %s:%d\n", cudaGetErrorString(e_), __FILE__, __LINE__); \
    return EXIT_FAILURE; } } while (0)

typedef struct {
    int width;
    int height;
    float *elements;
} Matrix;

__global__ void MatMulKernel(Matrix A, Matrix B, Matrix C)
{
    float Cvalue = 0;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= A.height || col >= B.width) return;
    for (int e = 0; e < A.width; ++e)
        Cvalue += A.elements[row * A.width + e] * B.elements[e * B.width + col];
    C.elements[row * C.width + col] = Cvalue;
}

// The wrong way round: neighbours of a warp are in different rows.
__global__ void MatMulRowsFirst(Matrix A, Matrix B, Matrix C)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < A.height && col < B.width) {
        float sum = 0.f;
        for (int k = 0; k < A.width; k++)
            sum += A.elements[row * A.width + k] * B.elements[k * B.width + col];
        C.elements[row * C.width + col] = sum;
    }
}

static Matrix make(int height, int width)
{
    Matrix m = {width, height, (float *)malloc(width * height * sizeof(float))};
    for (int i = 0; i < width * height; i++) m.elements[i] = (float)(rand() % 9 - 4);
    return m;
}

static int differences(Matrix A, Matrix B, Matrix C)
{
    int wrong = 0;
    for (int i = 0; i < C.height; i++)
        for (int j = 0; j < C.width; j++) {
            float sum = 0;
            for (int k = 0; k < A.width; k++)
                sum += A.elements[i * A.width + k] * B.elements[k * B.width + j];
            if (fabsf(sum - C.elements[i * C.width + j]) > 1e-3f) wrong++;
        }
    return wrong;
}

int main(int argc, char **argv)
{
    Matrix A = make(67, 45), B = make(45, 83), C = make(67, 83);
    Matrix dA = A, dB = B, dC = C;
    size_t aBytes = 67 * 45 * sizeof(float), bBytes = 45 * 83 * sizeof(float), cBytes = 67 * 83 * sizeof(float);
    CUDA_CALL(cudaMalloc((void **)&dA.elements, aBytes));
    CUDA_CALL(cudaMalloc((void **)&dB.elements, bBytes));
    CUDA_CALL(cudaMalloc((void **)&dC.elements, cBytes));
    CUDA_CALL(cudaMemcpy(dA.elements, A.elements, aBytes, cudaMemcpyHostToDevice));
    CUDA_CALL(cudaMemcpy(dB.elements, B.elements, bBytes, cudaMemcpyHostToDevice));

    dim3 dimBlock(16, 16);
    dim3 dimGrid((B.width + dimBlock.x - 1) / dimBlock.x, (A.height + dimBlock.y - 1) / dimBlock.y);
    MatMulKernel<<<dimGrid, dimBlock>>>(dA, dB, dC);
    CUDA_CALL(cudaGetLastError());
    CUDA_CALL(cudaMemcpy(C.elements, dC.elements, cBytes, cudaMemcpyDeviceToHost));
    int wrong = differences(A, B, C);
    printf("columns first: %d differences\n", wrong);

    CUDA_CALL(cudaMemset(dC.elements, 0, cBytes));
    MatMulRowsFirst<<<dim3(dimGrid.y, dimGrid.x), dimBlock>>>(dA, dB, dC);
    CUDA_CALL(cudaGetLastError());
    CUDA_CALL(cudaMemcpy(C.elements, dC.elements, cBytes, cudaMemcpyDeviceToHost));
    int wrongToo = differences(A, B, C);
    printf("rows first: %d differences\n", wrongToo);

    CUDA_CALL(cudaFree(dA.elements));
    CUDA_CALL(cudaFree(dB.elements));
    CUDA_CALL(cudaFree(dC.elements));
    free(A.elements); free(B.elements); free(C.elements);
    return wrong + wrongToo != 0;
}
