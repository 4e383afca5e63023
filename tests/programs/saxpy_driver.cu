// Shows: calls of the driver API beside the runtime: cuInit, attributes, contexts, memory.
// Links: cuda
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>
#include "headers/error_check.h"

#define CU(call) checkResult((call), #call, __FILE__, __LINE__)

__global__ void saxpy(float a, const float *x, float *y, size_t n)
{
    size_t tid = blockIdx.x * blockDim.x + threadIdx.x;
    if (tid < n) y[tid] = a * x[tid] + y[tid];
}

int main()
{
    CU(cuInit(0));
    int count = 0, version = 0, major = 0, minor = 0, warp = 0, threads = 0;
    CU(cuDeviceGetCount(&count));
    if (count == 0) return 1;
    CUdevice device;
    char name[100] = "";
    CU(cuDeviceGet(&device, 0));
    CU(cuDeviceGetName(name, sizeof(name), device));
    CU(cuDriverGetVersion(&version));
    CU(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    CU(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
    CU(cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
    CU(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device));
    size_t total = 0, freeMem = 0, totalMem = 0;
    CU(cuDeviceTotalMem(&total, device));
    bool sane = strlen(name) > 0 && version >= 9000 && major >= 3 && minor >= 0 && warp == 32 && threads == 1024 && total > 0;
    printf("device: %s\n", sane ? "sane" : "strange");

    CUcontext context, current;
    CU(cuDevicePrimaryCtxRetain(&context, device));
    CU(cuCtxSetCurrent(context));
    CU(cuCtxGetCurrent(&current));
    CU(cuMemGetInfo(&freeMem, &totalMem));
    sane = sane && current == context && freeMem <= totalMem && freeMem > 0;

    const size_t n = 3000, bytes = n * sizeof(float);
    std::vector<float> x(n), y(n), result(n);
    for (size_t i = 0; i < n; i++) x[i] = (float)i, y[i] = 1.0f;
    CUdeviceptr dx, dy;
    CU(cuMemAlloc(&dx, bytes));
    CU(cuMemAlloc(&dy, bytes));
    CU(cuMemcpyHtoD(dx, x.data(), bytes));
    CU(cuMemcpyHtoD(dy, y.data(), bytes));
    saxpy<<<(n + 127) / 128, 128>>>(2.0f, (const float *)dx, (float *)dy, n);
    checkCudaErrors(cudaGetLastError());
    CU(cuCtxSynchronize());
    CU(cuMemcpyDtoH(result.data(), dy, bytes));
    int wrong = 0;
    for (size_t i = 0; i < n; i++) wrong += result[i] != 2.0f * x[i] + y[i];
    printf("saxpy: %d wrong\n", wrong);

    // The last half is set by words, then read back.
    CU(cuMemsetD32(dy + bytes / 2, 0x3f800000, n / 2));
    CU(cuMemcpyDtoH(result.data(), dy, bytes));
    for (size_t i = n / 2; i < n; i++) wrong += result[i] != 1.0f;
    printf("memset: %d wrong\n", wrong);
    CU(cuMemFree(dx));
    CU(cuMemFree(dy));
    const char *text = NULL;
    CU(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text));
    printf("invalid value: %s\n", text);
    CU(cuDevicePrimaryCtxRelease(device));
    return !(sane && wrong == 0);
}
