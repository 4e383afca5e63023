// Shows: the heat equation on a plate, two grids that swap their roles.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// error checking macro
#define cudaCheckErrors(msg) \
    do { \
        cudaError_t __err = cudaGetLastError(); \
        if (__err != cudaSuccess) { \
            fprintf(stderr, "Fatal error: %s (%s at %s:%d)\n", \
                msg, cudaGetErrorString(__err), \
                __FILE__, __LINE__); \
            fprintf(stderr, "*** FAILED - ABORTING\n"); \
            exit(1); \
        } \
    } while (0)

#define I2D(num, c, r) ((r) * (num) + (c))

__host__ __device__ void step_kernel_mod_body(int i, int j, int ni, int nj, float fact, const float *temp_in, float *temp_out)
{
  int i00 = I2D(ni, i, j);
  int im10 = I2D(ni, i - 1, j);
  int ip10 = I2D(ni, i + 1, j);
  int i0m1 = I2D(ni, i, j - 1);
  int i0p1 = I2D(ni, i, j + 1);
  float d2tdx2 = temp_in[im10] - 2 * temp_in[i00] + temp_in[ip10];
  float d2tdy2 = temp_in[i0m1] - 2 * temp_in[i00] + temp_in[i0p1];
  temp_out[i00] = temp_in[i00] + fact * (d2tdx2 + d2tdy2);
}

__global__ void step_kernel_gpu(int ni, int nj, float fact, const float *temp_in, float *temp_out)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i > 0 && i < ni - 1 && j > 0 && j < nj - 1)
    step_kernel_mod_body(i, j, ni, nj, fact, temp_in, temp_out);
}

void step_kernel_ref(int ni, int nj, float fact, const float *temp_in, float *temp_out)
{
  for (int j = 1; j < nj - 1; j++)
    for (int i = 1; i < ni - 1; i++)
      step_kernel_mod_body(i, j, ni, nj, fact, temp_in, temp_out);
}

int main()
{
  const int nstep = 20, ni = 70, nj = 50, size = ni * nj * sizeof(float);
  float tfac = 0.125f;
  float *temp1_ref = (float *)malloc(size), *temp2_ref = (float *)malloc(size), *temp1 = (float *)malloc(size);
  for (int i = 0; i < ni * nj; ++i)
    temp1_ref[i] = temp2_ref[i] = temp1[i] = (float)(rand() % 100);

  float *temp1_d, *temp2_d, *temp_tmp;
  cudaMalloc((void **)&temp1_d, size);
  cudaMalloc((void **)&temp2_d, size);
  cudaCheckErrors("cudaMalloc fail");
  cudaMemcpy(temp1_d, temp1, size, cudaMemcpyHostToDevice);
  cudaMemcpy(temp2_d, temp1_d, size, cudaMemcpyDeviceToDevice);
  cudaCheckErrors("cudaMemcpy fail");

  for (int istep = 0; istep < nstep; istep++) {
    step_kernel_ref(ni, nj, tfac, temp1_ref, temp2_ref);
    temp_tmp = temp1_ref;
    temp1_ref = temp2_ref;
    temp2_ref = temp_tmp;
  }

  dim3 tblocks(32, 8);
  dim3 grid((ni / tblocks.x) + 1, (nj / tblocks.y) + 1);
  for (int istep = 0; istep < nstep; istep++) {
    step_kernel_gpu<<<grid, tblocks>>>(ni, nj, tfac, temp1_d, temp2_d);
    cudaCheckErrors("kernel launch fail");
    temp_tmp = temp1_d;
    temp1_d = temp2_d;
    temp2_d = temp_tmp;
  }
  cudaMemcpy(temp1, temp1_d, size, cudaMemcpyDeviceToHost);
  cudaCheckErrors("cudaMemcpy fail or kernel fault");

  float maxError = 0;
  for (int i = 0; i < ni * nj; ++i) {
    float d = temp1[i] - temp1_ref[i];
    if (d < 0) d = -d;
    if (!(d <= maxError)) maxError = d;
  }
  if (maxError > 0.001f)
    printf("Problem! The Max Error of %.5f is NOT within acceptable bounds.\n", maxError);
  else
    printf("The Max Error is within acceptable bounds.\n");
  free(temp1_ref); free(temp2_ref); free(temp1);
  cudaFree(temp1_d);
  cudaFree(temp2_d);
  cudaCheckErrors("cudaFree fail");
  return maxError > 0.001f;
}
