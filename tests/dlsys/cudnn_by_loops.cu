// What cudnn.py calls of cuDNN, by plain loops of one thread, with the manual's parameters. It
// offers three algorithms, of which only the last may be taken, and fails unless that one gets the
// workspace that it asks for.
#include <cuda_runtime.h>

namespace {

const int kBadParameter = 2000, kWorkspace = 640, kAlgorithm = 7;

struct Said {
  int n[8], groups, math;
  cudaStream_t stream;
};

struct Found {
  int algorithm, status;
  float milliseconds;
  size_t memory;
  int determinism, math, reserved[3];
};

int made(Said** out) {
  *out = new Said();
  return 0;
}

int set4(Said* to, int a, int b, int c, int d) {
  to->n[0] = a, to->n[1] = b, to->n[2] = c, to->n[3] = d;
  return 0;
}

int find(const Said* how, int* count, Found* out) {
  out[0] = {1, 0, 0.1f, 0, 0, how->math, {}};                             // other bits in each run
  out[1] = {2, 0, 0.2f, static_cast<size_t>(1) << 40, 1, how->math, {}};  // too much memory
  out[2] = {kAlgorithm, 0, 0.3f, kWorkspace, 1, how->math, {}};
  *count = 3;
  return 0;
}

// Adds each product of an image's element and a filter's to where it belongs: y, x or w.
__global__ void loops_kernel(Said of_x, float* x, Said of_w, float* w, Said how, Said of_y,
                             float* y, char* room, int which) {
  const int *n = of_x.n, *k = of_w.n, *o = of_y.n, *h = how.n;
  for (int i = 0; i < kWorkspace; ++i) room[i] = 1;
  const Said& all = which == 0 ? of_y : which == 1 ? of_x : of_w;
  float* const out = which == 0 ? y : which == 1 ? x : w;
  for (int i = 0; i < all.n[0] * all.n[1] * all.n[2] * all.n[3]; ++i) out[i] = 0;
  const int filters = k[0] / how.groups;
  for (int i = 0; i < o[0] * o[1] * o[2] * o[3]; ++i)
    for (int c = 0; c < k[1]; ++c)
      for (int t = 0; t < k[2] * k[3]; ++t) {
        const int ow = i % o[3], oh = i / o[3] % o[2], f = i / o[3] / o[2] % k[0];
        const int row = oh * h[2] - h[0] + t / k[3] * h[4];
        const int column = ow * h[3] - h[1] + t % k[3] * h[5];
        if (row < 0 || row >= n[2] || column < 0 || column >= n[3]) continue;
        const int channel = i / o[3] / o[2] / k[0] * n[1] + f / filters * k[1] + c;
        const int at_x = (channel * n[2] + row) * n[3] + column;
        const int at_w = (f * k[1] + c) * k[2] * k[3] + t;
        if (which == 0) y[i] += x[at_x] * w[at_w];
        if (which == 1) x[at_x] += y[i] * w[at_w];
        if (which == 2) w[at_w] += y[i] * x[at_x];
      }
}

int loops(const Said* handle, float one, const Said* of_x, float* x, const Said* of_w, float* w,
          const Said* how, const Said* of_y, float* y, int algorithm, char* room, size_t bytes,
          float zero, int which) {
  if (algorithm != kAlgorithm || bytes != kWorkspace || !room || one != 1 || zero != 0)
    return kBadParameter;
  loops_kernel<<<1, 1, 0, handle->stream>>>(*of_x, x, *of_w, w, *how, *of_y, y, room, which);
  return cudaGetLastError() == cudaSuccess ? 0 : kBadParameter;
}

}  // namespace

extern "C" {

int cudnnCreate(Said** out) { return made(out); }
int cudnnCreateTensorDescriptor(Said** out) { return made(out); }
int cudnnCreateFilterDescriptor(Said** out) { return made(out); }
int cudnnCreateConvolutionDescriptor(Said** out) { return made(out); }
const char* cudnnGetErrorString(int failed) { return failed ? "CUDNN_STATUS_BAD_PARAM" : "none"; }

int cudnnSetStream(Said* handle, cudaStream_t stream) {
  handle->stream = stream;
  return 0;
}
int cudnnSetTensor4dDescriptor(Said* to, int format, int type, int n, int c, int h, int w) {
  return format != 0 || type != 0 ? kBadParameter : set4(to, n, c, h, w);
}
int cudnnSetFilter4dDescriptor(Said* to, int type, int format, int k, int c, int h, int w) {
  return format != 0 || type != 0 ? kBadParameter : set4(to, k, c, h, w);
}
int cudnnSetConvolution2dDescriptor(Said* to, int pad_h, int pad_w, int stride_h, int stride_w,
                                    int dilation_h, int dilation_w, int mode, int type) {
  if (mode != 1 || type != 0) return kBadParameter;
  to->n[4] = dilation_h, to->n[5] = dilation_w, to->groups = 1;
  return set4(to, pad_h, pad_w, stride_h, stride_w);
}
int cudnnSetConvolutionGroupCount(Said* to, int groups) {
  to->groups = groups;
  return 0;
}
int cudnnSetConvolutionMathType(Said* to, int math) {
  to->math = math;
  return 0;
}

// The algorithms run on the stream of the handle, which must be there.
int cudnnFindConvolutionForwardAlgorithm(Said* handle, Said*, Said*, Said* how, Said*, int most,
                                         int* count, Found* out) {
  return handle->stream || most < 3 ? kBadParameter : find(how, count, out);
}
int cudnnFindConvolutionBackwardDataAlgorithm(Said* handle, Said*, Said*, Said* how, Said*,
                                              int most, int* count, Found* out) {
  return handle->stream || most < 3 ? kBadParameter : find(how, count, out);
}
int cudnnFindConvolutionBackwardFilterAlgorithm(Said* handle, Said*, Said*, Said* how, Said*,
                                                int most, int* count, Found* out) {
  return handle->stream || most < 3 ? kBadParameter : find(how, count, out);
}

int cudnnConvolutionForward(Said* handle, const float* one, Said* of_x, float* x, Said* of_w,
                            float* w, Said* how, int algorithm, char* room, size_t bytes,
                            const float* zero, Said* of_y, float* y) {
  return loops(handle, *one, of_x, x, of_w, w, how, of_y, y, algorithm, room, bytes, *zero, 0);
}
int cudnnConvolutionBackwardData(Said* handle, const float* one, Said* of_w, float* w, Said* of_y,
                                 float* y, Said* how, int algorithm, char* room, size_t bytes,
                                 const float* zero, Said* of_x, float* x) {
  return loops(handle, *one, of_x, x, of_w, w, how, of_y, y, algorithm, room, bytes, *zero, 1);
}
int cudnnConvolutionBackwardFilter(Said* handle, const float* one, Said* of_x, float* x, Said* of_y,
                                   float* y, Said* how, int algorithm, char* room, size_t bytes,
                                   const float* zero, Said* of_w, float* w) {
  return loops(handle, *one, of_x, x, of_w, w, how, of_y, y, algorithm, room, bytes, *zero, 2);
}

}  // extern "C"
