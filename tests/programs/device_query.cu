// Shows: what the runtime says about devices, checked for sense rather than printed.
#include <cstdio>
#include <cstring>

#include <cuda_runtime.h>

#include "headers/error_check.h"

static int failures = 0;

static void expect(bool good, const char *what)
{
    if (!good) {
        printf("wrong: %s\n", what);
        failures++;
    }
}

static int attribute(cudaDeviceAttr attr)
{
    int value = -1;
    checkCudaErrors(cudaDeviceGetAttribute(&value, attr, 0));
    return value;
}

int main(int argc, char **argv)
{
    int deviceCount = 0, driverVersion = 0, runtimeVersion = 0;
    checkCudaErrors(cudaGetDeviceCount(&deviceCount));
    if (deviceCount == 0) {
        printf("There are no available device(s) that support CUDA\n");
        return 1;
    }
    checkCudaErrors(cudaDriverGetVersion(&driverVersion));
    checkCudaErrors(cudaRuntimeGetVersion(&runtimeVersion));
    expect(runtimeVersion / 1000 >= 11, "the runtime is of CUDA 11 or newer");
    expect(driverVersion > 0, "there is a driver");

    for (int dev = 0; dev < deviceCount; ++dev) {
        cudaDeviceProp prop;
        checkCudaErrors(cudaSetDevice(dev));
        checkCudaErrors(cudaGetDeviceProperties(&prop, dev));
        expect(strlen(prop.name) > 0, "it has a name");
        expect(prop.major >= 3 && prop.minor >= 0, "capability");
        expect(prop.warpSize == 32, "warp size");
        expect(prop.multiProcessorCount > 0, "multiprocessors");
        expect(prop.totalGlobalMem > (64u << 20), "global memory");
        expect(prop.totalConstMem == 65536, "constant memory");
        expect(prop.sharedMemPerBlock == 49152, "shared memory of a block");
        expect(prop.sharedMemPerMultiprocessor >= prop.sharedMemPerBlock, "shared memory of an SM");
        expect(prop.sharedMemPerBlockOptin >= prop.sharedMemPerBlock, "shared memory by opt-in");
        expect(prop.regsPerBlock == 65536 && prop.regsPerMultiprocessor >= 65536, "registers");
        expect(prop.maxThreadsPerBlock == 1024, "threads of a block");
        expect(prop.maxThreadsPerMultiProcessor >= 1024, "threads of an SM");
        expect(prop.maxBlocksPerMultiProcessor >= 8, "blocks of an SM");
        expect(prop.maxThreadsDim[0] == 1024 && prop.maxThreadsDim[2] == 64, "block dimensions");
        expect(prop.maxGridSize[0] == 2147483647 && prop.maxGridSize[1] == 65535, "grid dimensions");
        expect(prop.textureAlignment >= 32 && prop.memPitch > 0, "alignment and pitch");
        expect(prop.l2CacheSize > 0 && prop.memoryBusWidth > 0, "L2 cache and bus");
        expect(prop.asyncEngineCount >= 1 && prop.concurrentKernels == 1, "concurrency");
        expect(prop.unifiedAddressing == 1 && prop.managedMemory == 1, "unified memory");
        expect(prop.canMapHostMemory == 1, "mapped memory");
        expect(prop.ECCEnabled == 0 || prop.ECCEnabled == 1, "ECC");
        expect(prop.integrated == 0 || prop.integrated == 1, "integrated");
        expect(prop.pciBusID >= 0 && prop.pciDeviceID >= 0 && prop.pciDomainID >= 0, "PCI");
        expect(prop.streamPrioritiesSupported == 0 || prop.streamPrioritiesSupported == 1, "priorities");
        expect(prop.cooperativeLaunch == 0 || prop.cooperativeLaunch == 1, "cooperative launch");
    }

    checkCudaErrors(cudaSetDevice(0));
    cudaDeviceProp prop;
    checkCudaErrors(cudaGetDeviceProperties(&prop, 0));
    expect(attribute(cudaDevAttrMaxThreadsPerBlock) == prop.maxThreadsPerBlock, "attribute: threads");
    expect(attribute(cudaDevAttrWarpSize) == prop.warpSize, "attribute: warp");
    expect(attribute(cudaDevAttrMultiProcessorCount) == prop.multiProcessorCount, "attribute: SMs");
    expect(attribute(cudaDevAttrComputeCapabilityMajor) == prop.major, "attribute: major");
    expect(attribute(cudaDevAttrComputeCapabilityMinor) == prop.minor, "attribute: minor");
    expect(attribute(cudaDevAttrMaxSharedMemoryPerBlock) == (int)prop.sharedMemPerBlock, "attribute: shared");
    expect(attribute(cudaDevAttrMaxGridDimX) == prop.maxGridSize[0], "attribute: grid");
    expect(attribute(cudaDevAttrL2CacheSize) == prop.l2CacheSize, "attribute: L2");
    expect(attribute(cudaDevAttrUnifiedAddressing) == 1, "attribute: unified");
    expect(attribute(cudaDevAttrClockRate) > 0, "attribute: clock");
    expect(attribute(cudaDevAttrMemoryClockRate) > 0, "attribute: memory clock");
    expect(attribute(cudaDevAttrConcurrentKernels) == prop.concurrentKernels, "attribute: kernels");

    size_t freeBytes = 0, totalBytes = 0;
    checkCudaErrors(cudaMemGetInfo(&freeBytes, &totalBytes));
    expect(freeBytes > 0 && freeBytes <= totalBytes, "free memory");
    printf("device query: %s\n", failures ? "FAILED" : "PASSED");
    return failures != 0;
}
