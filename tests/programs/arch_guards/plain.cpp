#include "portable.h"

int compiledByNvcc() { return COMPILED_BY_NVCC + 10 * (where() == -1) + 100 * countBits(0xf0u); }
