/*!
 * \file instruction.cc
 * \brief Instructions of x86-64 as far as their one operand in memory.
 *
 * An SSE or AVX instruction that wants its operand aligned, and an address with wrong upper bits,
 * end in a signal without an address: it looks like a null pointer's. A division that has no result
 * ends in a signal, too, where a GPU goes on. Encoding: Intel's manual,
 * volume 2, chapter 2.
 */
#include "instruction.h"

#include <cstddef>
#include <cstring>

#ifdef __linux__
#include <ucontext.h>
#endif

#if defined(__linux__) && defined(__x86_64__)

namespace emulator {
namespace {

// In the order of their numbers in instructions.
const int kRegisters[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                            REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

struct Prefixes {
  unsigned index = 0, base = 0;  // the fourth bits of registers
  int scale = 1;                 // of a displacement of one byte
};

bool is_plain_prefix(unsigned char byte) {
  return byte == 0x66 || byte == 0xf2 || byte == 0xf3 || byte == 0x2e || byte == 0x3e;
}

// What stands before the opcode's last byte. Null if it is not understood.
const unsigned char* skip_prefixes(const unsigned char* code, Prefixes* found) {
  while (is_plain_prefix(*code)) ++code;
  if (*code == 0xc5) return code + 2;
  if (*code == 0xc4 || *code == 0x62) {  // AVX, and AVX-512, whose bits are upside down
    found->index = (~code[1] >> 6) & 1;
    found->base = (~code[1] >> 5) & 1;
    if (*code == 0xc4) return code + 3;
    found->scale = 16 << ((code[3] >> 5) & 3);
    return code + 4;
  }
  if ((*code & 0xf0) == 0x40) {
    found->index = (*code >> 1) & 1;
    found->base = *code & 1;
    ++code;
  }
  if (*code != 0x0f) return code;
  ++code;
  return *code == 0x38 || *code == 0x3a ? code + 1 : code;
}

bool decode(const unsigned char* code, const greg_t* registers, uintptr_t* address) {
  Prefixes prefixes;
  code = skip_prefixes(code, &prefixes) + 1;  // behind the opcode
  const unsigned mode = *code >> 6, operand = *code & 7;
  ++code;
  if (mode == 3 || (mode == 0 && operand == 5)) return false;  // none, or one of the program's own
  auto value = [registers](unsigned number) {
    return static_cast<uintptr_t>(registers[kRegisters[number]]);
  };
  bool has_base = true;
  uintptr_t sum = 0;
  unsigned base = operand;
  if (operand == 4) {
    const unsigned char scaled = *code++;
    const unsigned index = (scaled >> 3 & 7) | prefixes.index << 3;
    base = scaled & 7;
    has_base = !(base == 5 && mode == 0);
    if (index != 4) sum += value(index) << (scaled >> 6);
  }
  if (has_base) sum += value(base | prefixes.base << 3);
  if (mode == 1)
    sum += static_cast<uintptr_t>(static_cast<intptr_t>(static_cast<signed char>(*code)) *
                                  prefixes.scale);
  if (mode == 2 || !has_base) {
    int32_t displacement;
    std::memcpy(&displacement, code, sizeof displacement);
    sum += static_cast<uintptr_t>(static_cast<intptr_t>(displacement));
  }
  *address = sum;
  return true;
}

// How many bytes name an operand, from the one behind the opcode on.
unsigned length_of_operand(const unsigned char* code) {
  const unsigned mode = *code >> 6, operand = *code & 7;
  if (mode == 3) return 1;
  const bool is_scaled = operand == 4;
  const bool has_address = mode == 2 || (mode == 0 && (is_scaled ? code[1] & 7 : operand) == 5);
  return 1 + is_scaled + (has_address ? 4 : mode);
}

}  // namespace

bool skip_division(void* context) {
  greg_t* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* code = reinterpret_cast<const unsigned char*>(registers[REG_RIP]);
  const bool is_short = *code == 0x66;
  code += is_short;
  const bool is_long = (*code & 0xf8) == 0x48;
  code += (*code & 0xf0) == 0x40;
  const bool has_sign = code[1] & 8;
  if ((*code & 0xfe) != 0xf6 || (code[1] & 0x30) != 0x30) return false;
  const bool is_byte = *code == 0xf6;
  uint64_t low = static_cast<uint64_t>(registers[REG_RAX]);
  const unsigned bits = is_byte ? 8 : is_short ? 16 : is_long ? 64 : 32;
  const uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
  // The smallest integer is the one for which a CPU can't say what it is by -1; both give it back.
  const bool is_smallest = has_sign && (low & mask) == (mask >> 1) + 1;
  const uint64_t quotient = is_smallest ? low & mask : mask, rest = is_smallest ? 0 : low & mask;
  auto put = [registers, bits, mask](int where, uint64_t value) {
    const auto old = static_cast<uint64_t>(registers[where]);
    registers[where] = static_cast<greg_t>(bits == 16 ? (old & ~mask) | value : value);
  };
  if (is_byte) {
    registers[REG_RAX] = static_cast<greg_t>((low & ~0xffffull) | rest << 8 | quotient);
  } else {
    put(REG_RAX, quotient);
    put(REG_RDX, rest);
  }
  registers[REG_RIP] += code + 1 + length_of_operand(code + 1) -
                        reinterpret_cast<const unsigned char*>(registers[REG_RIP]);
  return true;
}

bool find_address(int, const siginfo_t& info, const void* context, uintptr_t* address) {
  if (info.si_code != SI_KERNEL || info.si_addr != nullptr) return false;
  const greg_t* registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  return decode(reinterpret_cast<const unsigned char*>(registers[REG_RIP]), registers, address);
}

}  // namespace emulator

#else

namespace emulator {

bool skip_division(void*) { return false; }

bool find_address(int signal, const siginfo_t& info, const void*, uintptr_t* address) {
  *address = reinterpret_cast<uintptr_t>(info.si_addr);
  return signal == SIGBUS && info.si_code == BUS_ADRALN;
}

}  // namespace emulator

#endif

namespace emulator {

Interrupted::Interrupted(const void* context) {
#ifdef __linux__
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  at = static_cast<uintptr_t>(registers.gregs[REG_RIP]);
  stack = static_cast<uintptr_t>(registers.gregs[REG_RSP]);
#elif defined(__aarch64__)
  at = registers.pc, stack = registers.sp, link_ = registers.regs[30];
#endif
#endif
  (void)context;
}

uintptr_t Interrupted::caller() const {
#if defined(__linux__) && defined(__x86_64__)
  return *reinterpret_cast<const uintptr_t*>(stack);
#else
  return link_;
#endif
}

}  // namespace emulator
