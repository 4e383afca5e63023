// Shows: the Mandelbrot set by integers of fixed point, so that every device draws the same.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_SAFE(x) do { cudaError_t r = (x); if (r != cudaSuccess) { \
  fprintf(stderr, "%s failed: %s\n", #x, cudaGetErrorString(r)); exit(1); } } while (0)

typedef long long fixed;
enum { FRACTION = 24, MAX_ITER = 60 };

static __host__ __device__ inline fixed times(fixed a, fixed b) { return (a * b) >> FRACTION; }

static __host__ __device__ int escape(fixed cx, fixed cy)
{
  fixed x = 0, y = 0;
  int iter = 0;
  for (; iter < MAX_ITER; ++iter) {
    fixed x2 = times(x, x), y2 = times(y, y);
    if (x2 + y2 > ((fixed)4 << FRACTION)) break;
    y = 2 * times(x, y) + cy;
    x = x2 - y2 + cx;
  }
  return iter;
}

__global__ void mandelbrot(unsigned char *image, int w, int h, fixed left, fixed top, fixed step)
{
  unsigned int px = blockDim.x * blockIdx.x + threadIdx.x;
  unsigned int py = blockDim.y * blockIdx.y + threadIdx.y;
  if (px >= w || py >= h) return;
  image[py * w + px] = escape(left + px * step, top + py * step);
}

int main()
{
  const int w = 72, h = 24;
  const fixed one = (fixed)1 << FRACTION, left = -2 * one, top = -one - one / 5, step = one / 10;
  std::vector<unsigned char> image(w * h);
  unsigned char *d_image;
  CUDA_SAFE(cudaMalloc(&d_image, image.size()));
  dim3 block(16, 4), grid((w + block.x - 1) / block.x, (h + block.y - 1) / block.y);
  mandelbrot<<<grid, block>>>(d_image, w, h, left, top, step);
  CUDA_SAFE(cudaGetLastError());
  CUDA_SAFE(cudaMemcpy(image.data(), d_image, image.size(), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int y = 0; y < h; ++y) {
    char line[w + 1];
    for (int x = 0; x < w; ++x) {
      int iter = image[y * w + x];
      line[x] = iter == MAX_ITER ? '#' : iter > 8 ? '+' : iter > 4 ? '.' : ' ';
      wrong += iter != escape(left + x * step, top + y * step);
    }
    line[w] = 0;
    if (y % 4 == 0) printf("|%s|\n", line);
  }
  printf("%d pixels differ from the CPU's\n", wrong);
  CUDA_SAFE(cudaFree(d_image));
  return wrong != 0;
}
