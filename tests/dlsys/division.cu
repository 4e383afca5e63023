// Prints how many quotients of Divisor differ from those of the processor.
#include <cstdio>
#include <random>

#include "gpu_loops.cuh"

int main() {
  std::mt19937_64 random(1);
  long wrong = 0;
  for (int i = 0; i < 2000000; ++i) {
    const int64_t divisor = 1 + (random() >> (33 + random() % 31));
    uint32_t number = static_cast<uint32_t>(random() >> 33);
    if (i % 3 == 0) number = static_cast<uint32_t>(number / divisor * divisor);  // or one less
    if (i % 6 == 0 && number > 0) --number;
    wrong += dlsys::backend::Divisor::of(divisor).quotient(number) != number / divisor;
  }
  printf("%ld\n", wrong);
}
