// Shows: cudaMalloc3D and cudaMemcpy3D, of a whole box and of a part of it.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#include "headers/error_check.h"

__global__ void addPlaneNumber(cudaPitchedPtr ptr, cudaExtent extent)
{
    char *devPtr = (char *)ptr.ptr;
    size_t pitch = ptr.pitch, slicePitch = pitch * extent.height;
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x * sizeof(int) >= extent.width || y >= extent.height || z >= extent.depth) return;
    int *row = (int *)(devPtr + z * slicePitch + y * pitch);
    row[x] += 10000 * z;
}

int main()
{
    const int w = 11, h = 7, d = 5;
    std::vector<int> host(w * h * d), back(w * h * d, -1);
    for (int i = 0; i < w * h * d; i++) host[i] = i;

    cudaExtent extent = make_cudaExtent(w * sizeof(int), h, d);
    cudaPitchedPtr devPitched;
    checkCudaErrors(cudaMalloc3D(&devPitched, extent));
    checkCudaErrors(cudaMemset3D(devPitched, 0, extent));

    cudaMemcpy3DParms up = {0};
    up.srcPtr = make_cudaPitchedPtr(host.data(), w * sizeof(int), w, h);
    up.dstPtr = devPitched;
    up.extent = extent;
    up.kind = cudaMemcpyHostToDevice;
    checkCudaErrors(cudaMemcpy3D(&up));

    dim3 block(4, 4, 2), grid((w + 3) / 4, (h + 3) / 4, (d + 1) / 2);
    addPlaneNumber<<<grid, block>>>(devPitched, extent);
    getLastCudaError("addPlaneNumber");

    cudaMemcpy3DParms down = {0};
    down.srcPtr = devPitched;
    down.dstPtr = make_cudaPitchedPtr(back.data(), w * sizeof(int), w, h);
    down.extent = extent;
    down.kind = cudaMemcpyDeviceToHost;
    checkCudaErrors(cudaMemcpy3D(&down));
    int wrong = 0;
    for (int i = 0; i < w * h * d; i++) wrong += back[i] != host[i] + 10000 * (i / (w * h));
    printf("whole box: %d wrong\n", wrong);

    // A box of 3 x 2 x 2 from (4, 1, 2).
    int small[2][2][3];
    cudaMemcpy3DParms part = {0};
    part.srcPtr = devPitched;
    part.srcPos = make_cudaPos(4 * sizeof(int), 1, 2);
    part.dstPtr = make_cudaPitchedPtr(small, 3 * sizeof(int), 3, 2);
    part.extent = make_cudaExtent(3 * sizeof(int), 2, 2);
    part.kind = cudaMemcpyDeviceToHost;
    checkCudaErrors(cudaMemcpy3DAsync(&part, 0));
    checkCudaErrors(cudaStreamSynchronize(0));
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 2; y++)
            for (int x = 0; x < 3; x++)
                wrong += small[z][y][x] != back[((z + 2) * h + y + 1) * w + x + 4];
    printf("with the part: %d wrong, corner %d\n", wrong, small[0][0][0]);
    checkCudaErrors(cudaFree(devPitched.ptr));
    return wrong != 0;
}
