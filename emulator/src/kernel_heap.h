/*!
 * \file kernel_heap.h
 * \brief What kernels get by malloc and new.
 */
#ifndef EMULATOR_KERNEL_HEAP_H_
#define EMULATOR_KERNEL_HEAP_H_

namespace emulator {

/*! \brief All memory of the device was freed: nothing is left of it. */
void forget_kernel_heap();

}  // namespace emulator

#endif  // EMULATOR_KERNEL_HEAP_H_
