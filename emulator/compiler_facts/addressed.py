"""Asks the compiler whose addresses a second version takes.

What the passes believe of addresses they read off words, and in a language in which `f(v)`,
`W{v}.r` and `v >>= 1` may all give an address away, that can't be known so. GCC and clang write
down what they understood (gimple.py, clang_tree.py). A variable that the passes took for one whose
address nobody has, and whose address is taken there, is pinned to its place, and the source
compiled once more.
"""

# Stands behind each source. A dump in which that is not seen is not understood.
PROBE = """
# 1 "<probe>" 3
extern "C++" {
namespace emulator {
template <typename T>
static int probe(KernelOf<0> emulator_number_0, T** to) {
  T taken = 1, held = 2;
  const T fixed = 3;
  to[0] = &taken;
  [&](auto at) { to[at] = &held; }(1);
  const_cast<T&>(fixed) += 4;
  to[0] = to[1] = nullptr;  // what pointed to variables of here must not: GCC would warn
  return taken + held + fixed;
}
[[gnu::used]] static int probed(int** to) { return probe(KernelOf<0>(), to); }
}
}
"""
PROBED = {0: {"taken", "held", "fixed"}}


def addressed(dump, believed, seen):
    """{number: names} of variables that the compiler knows better.

    Args:
        dump: what the compiler wrote of a source with the probe behind it.
        believed: {number: names} of variables whose addresses nobody should have.
        seen: what reads the dump, of gimple.py or clang_tree.py.

    Raises:
        ValueError: the dump is not understood.
    """
    found = seen(dump, {**believed, **PROBED})
    if found.pop(0, None) != PROBED[0]:
        raise ValueError("what the compiler says of addresses is not understood")
    return found
