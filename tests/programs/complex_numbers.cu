// Shows: complex numbers with operators: a Julia set, and a discrete Fourier transform.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define HANDLE_NULL(a) { if (a == NULL) { printf("Host memory failed in %s at line %d\n", __FILE__, __LINE__); exit(EXIT_FAILURE); } }
static void HandleError(cudaError_t err, const char *file, int line) {
    if (err != cudaSuccess) {
        printf("%s in %s at line %d\n", cudaGetErrorString(err), file, line);
        exit(EXIT_FAILURE);
    }
}
#define HANDLE_ERROR(err) (HandleError(err, __FILE__, __LINE__))

#define DIM 48

struct cuComplex {
    double r;
    double i;
    __host__ __device__ cuComplex(double a = 0, double b = 0) : r(a), i(b) {}
    __host__ __device__ double magnitude2(void) const { return r * r + i * i; }
    __host__ __device__ cuComplex operator*(const cuComplex &a) const {
        return cuComplex(r * a.r - i * a.i, i * a.r + r * a.i);
    }
    __host__ __device__ cuComplex operator+(const cuComplex &a) const { return cuComplex(r + a.r, i + a.i); }
    __host__ __device__ cuComplex &operator+=(const cuComplex &a) { r += a.r; i += a.i; return *this; }
};

__host__ __device__ int julia(int x, int y) {
    const double scale = 1.5;
    cuComplex c(-0.75, 0.125), a(scale * (DIM / 2 - x) / (DIM / 2), scale * (DIM / 2 - y) / (DIM / 2));
    for (int i = 0; i < 20; i++) {
        a = a * a + c;
        if (a.magnitude2() > 1000) return 0;
    }
    return 1;
}

__global__ void juliaKernel(unsigned char *ptr) {
    int x = blockIdx.x;
    int y = blockIdx.y;
    int offset = x + y * gridDim.x;
    ptr[offset] = 255 * julia(x, y);
}

// One block a frequency; the partial sums meet in shared memory.
__global__ void dft(const cuComplex *in, cuComplex *out, int n) {
    __shared__ double re[64], im[64];
    cuComplex sum;
    for (int t = threadIdx.x; t < n; t += blockDim.x) {
        double angle = -2.0 * (int)(blockIdx.x * t % n) / n;
        sum += in[t] * cuComplex(cospi(angle), sinpi(angle));
    }
    re[threadIdx.x] = sum.r;
    im[threadIdx.x] = sum.i;
    __syncthreads();
    for (int half = 32; half > 0; half >>= 1) {
        if (threadIdx.x < half) {
            re[threadIdx.x] += re[threadIdx.x + half];
            im[threadIdx.x] += im[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = cuComplex(re[0], im[0]);
}

int main(void) {
    unsigned char *bitmap = (unsigned char *)malloc(DIM * DIM), *dev_bitmap;
    HANDLE_NULL(bitmap);
    HANDLE_ERROR(cudaMalloc((void **)&dev_bitmap, DIM * DIM));
    dim3 grid(DIM, DIM);
    juliaKernel<<<grid, 1>>>(dev_bitmap);
    HANDLE_ERROR(cudaGetLastError());
    HANDLE_ERROR(cudaMemcpy(bitmap, dev_bitmap, DIM * DIM, cudaMemcpyDeviceToHost));
    // Roundings may decide about points at the edge of the set.
    int different = 0, inside = 0;
    for (int y = 0; y < DIM; y++)
        for (int x = 0; x < DIM; x++) {
            different += bitmap[x + y * DIM] != 255 * julia(x, y);
            inside += bitmap[x + y * DIM] != 0;
        }
    bool drawn = different < 10 && inside > 50;
    printf("Julia set: %s\n", drawn ? "as on the CPU" : "wrong");

    const int n = 100;
    std::vector<cuComplex> wave(n), spectrum(n);
    for (int t = 0; t < n; t++) wave[t] = cuComplex(std::cos(2 * M_PI * 7 * t / n), 0.5 * std::sin(2 * M_PI * 20 * t / n));
    cuComplex *dev_in, *dev_out;
    HANDLE_ERROR(cudaMalloc((void **)&dev_in, n * sizeof(cuComplex)));
    HANDLE_ERROR(cudaMalloc((void **)&dev_out, n * sizeof(cuComplex)));
    HANDLE_ERROR(cudaMemcpy(dev_in, wave.data(), n * sizeof(cuComplex), cudaMemcpyHostToDevice));
    dft<<<n, 64>>>(dev_in, dev_out, n);
    HANDLE_ERROR(cudaGetLastError());
    HANDLE_ERROR(cudaMemcpy(spectrum.data(), dev_out, n * sizeof(cuComplex), cudaMemcpyDeviceToHost));
    int peaks = 0;
    for (int k = 0; k < n; k++)
        if (spectrum[k].magnitude2() > 1) printf("peak at %d: %.1f\n", k, spectrum[k].r), peaks++;
    HANDLE_ERROR(cudaFree(dev_bitmap));
    HANDLE_ERROR(cudaFree(dev_in));
    HANDLE_ERROR(cudaFree(dev_out));
    free(bitmap);
    return !(drawn && peaks == 4);
}
