// Shows: colours to grey levels with uchar3 and uchar4, then to a negative in place.
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <cuda.h>
#include <cuda_runtime.h>

#define CHANNELS 3

#define cudaCheckError() {                                                             \
    cudaError_t e = cudaGetLastError();                                                \
    if (e != cudaSuccess) {                                                            \
        printf("Cuda failure %s:%d: '%s'\n", __FILE__, __LINE__, cudaGetErrorString(e)); \
        exit(EXIT_FAILURE);                                                            \
    }                                                                                  \
}

__global__ void colorToGrey(unsigned char *grayImage, const unsigned char *rgbImage, int width, int height)
{
    int Col = threadIdx.x + blockIdx.x * blockDim.x;
    int Row = threadIdx.y + blockIdx.y * blockDim.y;
    if (Col < width && Row < height) {
        int greyOffset = Row * width + Col;
        int rgbOffset = greyOffset * CHANNELS;
        unsigned char r = rgbImage[rgbOffset];
        unsigned char g = rgbImage[rgbOffset + 1];
        unsigned char b = rgbImage[rgbOffset + 2];
        grayImage[greyOffset] = (r * 54 + g * 183 + b * 19) >> 8;
    }
}

__global__ void rgbaToGrey(const uchar4 *const rgba, unsigned char *const grey, int rows, int cols)
{
    const int2 p = make_int2(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y);
    if (p.x >= cols || p.y >= rows) return;
    const uchar4 c = rgba[p.y * cols + p.x];
    grey[p.y * cols + p.x] = (c.x * 54 + c.y * 183 + c.z * 19) >> 8;
}

__global__ void negative(uchar3 *image, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    uchar3 c = image[i];
    image[i] = make_uchar3(255 - c.x, 255 - c.y, 255 - c.z);
}

int main(int argc, char *argv[])
{
    const int width = 101, height = 57, count = width * height;
    unsigned char *rgb = (unsigned char *)malloc(count * CHANNELS), *grey = (unsigned char *)malloc(count);
    uchar4 *rgba = (uchar4 *)malloc(count * sizeof(uchar4));
    for (int i = 0; i < count; i++) {
        for (int c = 0; c < CHANNELS; c++) rgb[i * CHANNELS + c] = (unsigned char)(i * (c + 3) + 7 * c);
        rgba[i] = make_uchar4(rgb[i * 3], rgb[i * 3 + 1], rgb[i * 3 + 2], 255);
    }
    unsigned char *d_rgb, *d_grey;
    uchar4 *d_rgba;
    cudaMalloc((void **)&d_rgb, count * CHANNELS);
    cudaMalloc((void **)&d_grey, count);
    cudaMalloc((void **)&d_rgba, count * sizeof(uchar4));
    cudaCheckError();
    cudaMemcpy(d_rgb, rgb, count * CHANNELS, cudaMemcpyHostToDevice);
    cudaMemcpy(d_rgba, rgba, count * sizeof(uchar4), cudaMemcpyHostToDevice);
    cudaCheckError();

    dim3 dimGrid(ceil((float)width / 16), ceil((float)height / 16));
    dim3 dimBlock(16, 16, 1);
    int wrong[3] = {0, 0, 0};
    colorToGrey<<<dimGrid, dimBlock>>>(d_grey, d_rgb, width, height);
    cudaCheckError();
    cudaMemcpy(grey, d_grey, count, cudaMemcpyDeviceToHost);
    for (int i = 0; i < count; i++) wrong[0] += grey[i] != (rgb[i * 3] * 54 + rgb[i * 3 + 1] * 183 + rgb[i * 3 + 2] * 19) >> 8;
    rgbaToGrey<<<dimGrid, dimBlock>>>(d_rgba, d_grey, height, width);
    cudaCheckError();
    cudaMemcpy(grey, d_grey, count, cudaMemcpyDeviceToHost);
    for (int i = 0; i < count; i++) wrong[1] += grey[i] != (rgba[i].x * 54 + rgba[i].y * 183 + rgba[i].z * 19) >> 8;
    negative<<<(count + 127) / 128, 128>>>((uchar3 *)d_rgb, count);
    cudaCheckError();
    unsigned char *back = (unsigned char *)malloc(count * CHANNELS);
    cudaMemcpy(back, d_rgb, count * CHANNELS, cudaMemcpyDeviceToHost);
    cudaCheckError();
    for (int i = 0; i < count * CHANNELS; i++) wrong[2] += back[i] != 255 - rgb[i];
    printf("wrong pixels: %d %d %d\n", wrong[0], wrong[1], wrong[2]);
    cudaFree(d_rgb);
    cudaFree(d_grey);
    cudaFree(d_rgba);
    cudaCheckError();
    free(rgb); free(grey); free(rgba); free(back);
    return wrong[0] + wrong[1] + wrong[2] != 0;
}
