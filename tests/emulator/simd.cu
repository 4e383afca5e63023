// Arithmetic on the parts of a word, next to a plain version that takes them apart one by one.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "check.h"

namespace {

const int kWords = 4000;

// Random words, with every pair of the numbers where something happens in each part.
std::vector<unsigned> words(unsigned seed, int step) {
  const unsigned edges[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x8001, 0x7f80};
  std::vector<unsigned> found;
  for (int i = 0; i < 100; ++i) found.push_back(edges[(i / step) % 10] * 0x10001u);
  for (int i = 0; i < 100; ++i) found.push_back((edges[(i / step) % 10] & 0xff) * 0x1010101u);
  while (found.size() < kWords) {
    seed = seed * 1664525 + 1013904223;
    found.push_back(seed ^ seed >> 15);
  }
  return found;
}

// Part `at` of a word of parts of `bits`, as a signed or an unsigned number.
long long part(unsigned word, int at, int bits, bool has_sign) {
  const long long value = word >> at & ((1ll << bits) - 1);
  return has_sign && value >> (bits - 1) ? value - (1ll << bits) : value;
}

long long clamp(long long x, int bits, bool has_sign) {
  const long long most = (1ll << (bits - has_sign)) - 1, least = has_sign ? -most - 1 : 0;
  return std::min(std::max(x, least), most);
}

typedef long long (*Slow)(long long x, long long y, int bits, bool has_sign);

unsigned slow(unsigned a, unsigned b, int bits, bool has_sign, bool sums, Slow of) {
  unsigned result = 0;
  for (int at = 0; at < 32; at += bits) {
    const long long value =
        of(part(a, at, bits, has_sign), part(b, at, bits, has_sign), bits, has_sign);
    if (sums)
      result += static_cast<unsigned>(value);
    else
      result |= static_cast<unsigned>(value & ((1ll << bits) - 1)) << at;
  }
  return result;
}

}  // namespace

#define NUMBERED(name, call)                                                        \
  __global__ void kernel_##name(int n, const unsigned* p, const unsigned* q, unsigned* out) { \
    const int i = blockIdx.x * blockDim.x + threadIdx.x;                            \
    if (i < n) {                                                                    \
      const unsigned a = p[i], b = q[i];                                            \
      out[i] = call + 0 * (a + b);                                                  \
    }                                                                               \
  }                                                                                 \
  bool holds_##name(int bits, bool has_sign, bool sums, Slow of) {                  \
    const std::vector<unsigned> a = words(1, 1), b = words(2, 10);                  \
    Device<unsigned> p(a), q(b), out(kWords);                                       \
    kernel_##name<<<kWords / 100, 100>>>(kWords, p.data, q.data, out.data);         \
    const std::vector<unsigned> found = out.get();                                  \
    for (int i = 0; i < kWords; ++i) {                                              \
      if (found[i] == slow(a[i], b[i], bits, has_sign, sums, of)) continue;         \
      std::printf(#name " of %08x, %08x: %08x\n", a[i], b[i], found[i]);            \
      return false;                                                                 \
    }                                                                               \
    return true;                                                                    \
  }
#define TWO(name) NUMBERED(name##2, __##name##2(a, b)) NUMBERED(name##4, __##name##4(a, b))
#define ONE(name) NUMBERED(name##2, __##name##2(a)) NUMBERED(name##4, __##name##4(a))
#define IS(name, has_sign, expression)                                                    \
  {                                                                                       \
    const Slow of = [](long long x, long long y, int bits, bool has) -> long long {       \
      (void)y, (void)bits, (void)has;                                                     \
      return expression;                                                                  \
    };                                                                                    \
    const bool sums = std::string(#name).substr(0, 4) == "vsad";                          \
    CHECK(holds_##name##2(16, has_sign, sums, of) && holds_##name##4(8, has_sign, sums, of)); \
  }

TWO(vadd) TWO(vaddss) TWO(vaddus) TWO(vsub) TWO(vsubss) TWO(vsubus)
CASE(parts_are_added_and_subtracted) {
  IS(vadd, false, x + y)
  IS(vsub, false, x - y)
  IS(vaddss, true, clamp(x + y, bits, has))
  IS(vaddus, false, clamp(x + y, bits, has))
  IS(vsubss, true, clamp(x - y, bits, has))
  IS(vsubus, false, clamp(x - y, bits, has))
}

ONE(vabs) ONE(vabsss) ONE(vneg) ONE(vnegss)
CASE(parts_have_signs) {
  IS(vabs, true, std::llabs(x))
  IS(vabsss, true, clamp(std::llabs(x), bits, has))
  IS(vneg, true, -x)
  IS(vnegss, true, clamp(-x, bits, has))
}

TWO(vmaxs) TWO(vmaxu) TWO(vmins) TWO(vminu) TWO(vavgs) TWO(vavgu) TWO(vhaddu)
CASE(parts_have_a_most_and_a_middle) {
  IS(vmaxs, true, std::max(x, y))
  IS(vmaxu, false, std::max(x, y))
  IS(vmins, true, std::min(x, y))
  IS(vminu, false, std::min(x, y))
  IS(vavgs, true, (x + y) % 2 == 0 ? (x + y) / 2 : (x + y + (x + y > 0 ? 1 : -1)) / 2)
  IS(vavgu, false, (x + y + 1) / 2)
  IS(vhaddu, false, (x + y) / 2)
}

TWO(vabsdiffs) TWO(vabsdiffu) TWO(vsads) TWO(vsadu)
CASE(parts_lie_apart) {
  IS(vabsdiffs, true, std::llabs(x - y))
  IS(vabsdiffu, false, std::llabs(x - y))
  IS(vsads, true, std::llabs(x - y))
  IS(vsadu, false, std::llabs(x - y))
}

#define COMPARED(name) TWO(vcmp##name) TWO(vset##name)
COMPARED(eq) COMPARED(ne) COMPARED(ges) COMPARED(geu) COMPARED(gts) COMPARED(gtu)
COMPARED(les) COMPARED(leu) COMPARED(lts) COMPARED(ltu)
#define SAME(name, has_sign, operation)            \
  IS(vcmp##name, has_sign, x operation y ? -1 : 0) \
  IS(vset##name, has_sign, x operation y ? 1 : 0)
CASE(parts_are_compared) {
  SAME(eq, false, ==)
  SAME(ne, false, !=)
  SAME(ges, true, >=)
  SAME(geu, false, >=)
  SAME(gts, true, >)
  SAME(gtu, false, >)
  SAME(les, true, <=)
  SAME(leu, false, <=)
  SAME(lts, true, <)
  SAME(ltu, false, <)
}

struct __builtin_align__(16) Aligned {
  float x, y, z;
};
CASE(a_type_is_aligned_by_the_builtin) { CHECK(sizeof(Aligned) == 16 && alignof(Aligned) == 16); }
