// Shows: a program of several files: an image is blurred and written as PPM, to memory.
#include <cstdio>
#include "blur.cuh"

int main() {
  const Image image = drawTestImage(70, 45);
  int wrong = 0;
  for (int radius = 1; radius <= 3; ++radius) {
    const std::string ours = toPPM(blurOnDevice(image, radius));
    const std::string wanted = toPPM(blurOnHost(image, radius));
    unsigned sum = 0;
    for (char c : ours) sum = sum * 31 + static_cast<unsigned char>(c);
    std::printf("radius %d: %zu bytes, checksum %u, %s\n", radius, ours.size(), sum,
                ours == wanted ? "as on the CPU" : "NOT as on the CPU");
    wrong += ours != wanted;
  }
  return wrong;
}
