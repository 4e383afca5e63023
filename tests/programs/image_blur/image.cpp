#include "image.h"

Image drawTestImage(int width, int height) {
  Image image;
  image.width = width;
  image.height = height;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      int dx = x - width / 2, dy = y - height / 2;
      bool disc = dx * dx + dy * dy < width * width / 16;
      unsigned char stripe = (x / 4) % 2 ? 220 : 30;
      image.pixels.push_back({stripe, static_cast<unsigned char>(disc ? 255 : y), static_cast<unsigned char>(x + y)});
    }
  return image;
}

std::string toPPM(const Image& image) {
  std::string text = "P6\n" + std::to_string(image.width) + " " + std::to_string(image.height) + "\n255\n";
  for (const Pixel& p : image.pixels) {
    text += static_cast<char>(p.r);
    text += static_cast<char>(p.g);
    text += static_cast<char>(p.b);
  }
  return text;
}

Image blurOnHost(const Image& image, int radius) {
  Image result = image;
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      int r = 0, g = 0, b = 0, count = 0;
      for (int v = y - radius; v <= y + radius; ++v)
        for (int u = x - radius; u <= x + radius; ++u)
          if (u >= 0 && u < image.width && v >= 0 && v < image.height) {
            const Pixel& p = image.pixels[v * image.width + u];
            r += p.r, g += p.g, b += p.b, ++count;
          }
      result.pixels[y * image.width + x] = {static_cast<unsigned char>(r / count),
                                            static_cast<unsigned char>(g / count),
                                            static_cast<unsigned char>(b / count)};
    }
  return result;
}
