#pragma once
#include <string>
#include <vector>

struct Pixel {
  unsigned char r, g, b;
};

struct Image {
  int width = 0, height = 0;
  std::vector<Pixel> pixels;
};

// A picture of stripes and a disc.
Image drawTestImage(int width, int height);

// The image as a PPM file, in memory.
std::string toPPM(const Image& image);

Image blurOnHost(const Image& image, int radius);
