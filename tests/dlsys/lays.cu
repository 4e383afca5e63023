// Lays random weights and images as Hopper's convolutions want them, and joins parts; prints how
// many numbers are not where they belong.
#include <cstdio>
#include <random>
#include <vector>

#include "hopper_lays.cuh"

using namespace dlsys::backend::hopper;
using dlsys::backend::BFloat16;

struct Memory {
  float* data;
  int64_t size;
  explicit Memory(int64_t size) : size(size) { cudaMalloc(&data, size * sizeof(float)); }
  ~Memory() { cudaFree(data); }
  std::vector<float> get() const {
    std::vector<float> found(size);
    cudaMemcpy(found.data(), data, size * sizeof(float), cudaMemcpyDeviceToHost);
    return found;
  }
  void put(const std::vector<float>& from) {
    cudaMemcpy(data, from.data(), size * sizeof(float), cudaMemcpyHostToDevice);
  }
};

std::vector<float> numbered(int64_t size) {
  std::vector<float> found(size);
  for (int64_t i = 0; i < size; ++i) found[i] = static_cast<float>(i % 4093);
  return found;
}

char* bytes(const Memory& memory) { return reinterpret_cast<char*>(memory.data); }

long wrong_of_weights(int lines, int channels, int taps, int parts) {
  const int64_t size = static_cast<int64_t>(lines) * channels * taps;
  const std::vector<float> given = numbered(size * parts);
  Memory from(size * parts), to(size);
  from.put(given);
  split(from.data, to.data, lines, channels, taps, channels, 0, nullptr);
  const std::vector<float> laid = to.get();
  // Among others, by one launch: as they are, and turned.
  Memory also(size), turned(size), other(100);
  char* const data[] = {bytes(other), bytes(also), bytes(turned), bytes(other),
                        bytes(from),  bytes(from), bytes(from),   bytes(from)};
  const int64_t n[] = {4,     10,       5,    2, 1,  lines, channels, taps, 0,
                       lines, channels, taps, 1, 20, 1,     5,        0};
  long wrong = lay_weights<float>(data, n, nullptr) != 0;
  const std::vector<float> by_one = also.get(), by_channels = turned.get();
  for (int64_t line = 0; line < lines; ++line)
    for (int64_t channel = 0; channel < channels; ++channel)
      for (int64_t tap = 0; tap < taps; ++tap)
        wrong += by_channels[(tap * channels + channel) * lines + line] !=
                 given[(line * channels + channel) * taps + tap];
  wrong += by_one != laid;
  join(to.data, from.data, parts, size, lines, channels, taps, nullptr);
  const std::vector<float> joined = to.get();
  join(reinterpret_cast<BFloat16*>(to.data), from.data, parts, size, lines, channels, taps,
       nullptr);
  const std::vector<float> halves = to.get();
  const BFloat16* const rounded = reinterpret_cast<const BFloat16*>(halves.data());
  for (int64_t line = 0; line < lines; ++line)
    for (int64_t channel = 0; channel < channels; ++channel)
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t at = (line * channels + channel) * taps + tap;
        float sum = 0;
        for (int part = 0; part < parts; ++part)
          sum += given[part * size + (line * taps + tap) * channels + channel];
        wrong += laid[(tap * lines + line) * channels + channel] != given[at];
        wrong += joined[at] != sum;
        wrong += static_cast<float>(rounded[at]) != static_cast<float>(BFloat16(sum));
      }
  return wrong;
}

// Sums of parts, which are written as numbers of either kind.
template <class Element>
long wrong_of_sums(int64_t size, int parts) {
  const std::vector<float> given = numbered(size * parts);
  Memory from(size * parts), to(size);
  from.put(given);
  add_parts(reinterpret_cast<Element*>(to.data), from.data, parts, size, nullptr);
  const std::vector<float> found = to.get();
  const Element* const sums = reinterpret_cast<const Element*>(found.data());
  long wrong = 0;
  for (int64_t i = 0; i < size; ++i) {
    float sum = 0;
    for (int part = 0; part < parts; ++part) sum += given[part * size + i];
    wrong += static_cast<float>(sums[i]) != static_cast<float>(Element(sum));
  }
  return wrong;
}

int main() {
  std::mt19937 random(1);
  const auto draw = [&](int most) { return static_cast<int>(1 + random() % most); };
  long wrong = 0;
  for (int i = 0; i < 20; ++i) {
    wrong += wrong_of_weights(draw(20), draw(80), draw(30), draw(72));
    wrong += wrong_of_weights(draw(20), 4 * draw(20), draw(30), draw(72));  // four at once
    wrong += wrong_of_sums<float>(draw(3000), draw(12));
    wrong += wrong_of_sums<BFloat16>(4 * draw(900), draw(12));
  }
  // So many that a block has four lines.
  for (int i = 0; i < 2; ++i) wrong += wrong_of_weights(1370 + i, 64 + draw(32), draw(16), draw(3));
  wrong += wrong_of_weights(1371, 64 + 4 * draw(8), draw(16), draw(3));
  printf("%ld\n", wrong);
}
