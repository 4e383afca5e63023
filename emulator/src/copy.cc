/*!
 * \file copy.cc
 * \brief cudaMemcpy, cudaMemset and their like.
 *
 * A copy is checked as a whole before its first byte is written.
 */
#include "copy.h"

#include <atomic>
#include <cstdint>
#include <cstring>

#include "arena.h"
#include "capture.h"
#include "checked.h"
#include "counts.h"
#include "cuda_runtime.h"
#include "error.h"
#include "memory.h"
#include "protection.h"
#include "stream.h"
#include "variables.h"

namespace emulator {
namespace {

// A rectangle of memory: `height` rows of `width` bytes, `pitch` bytes apart.
struct Extent {
  size_t width, height;

  bool empty() const { return width == 0 || height == 0; }
  size_t span(size_t pitch) const { return pitch * (height - 1) + width; }
};

// Where a copy comes in the order of things, which the checked build looks after.
struct Order {
  cudaStream_t stream = nullptr;
  bool waits = true;  // whether the host does
};

// Memory of the host that the runtime gave out, managed or pinned, is the device's as well, and so
// are `__managed__` variables.
bool is_valid(const void* ptr, size_t span, bool on_device) {
  if (ptr == nullptr) return false;
  if (in_arena(ptr)) return on_device && is_device_range(ptr, span);
  return !on_device || is_shared_host_memory(ptr) || is_managed_variable(ptr, span);
}

// Which sides of a copy are the device's.
struct Sides {
  bool to_device, from_device;

  Sides(const void* to, const void* from, cudaMemcpyKind kind)
      : to_device(is_device(to, kind, cudaMemcpyHostToDevice)),
        from_device(is_device(from, kind, cudaMemcpyDeviceToHost)) {}

 private:
  static bool is_device(const void* ptr, cudaMemcpyKind kind, cudaMemcpyKind bit) {
    return kind == cudaMemcpyDefault ? in_arena(ptr) || is_symbol(ptr) : (kind & bit) != 0;
  }
};

// Both sides of a copy, from their first to their last byte.
cudaError_t check_sides(const void* to, size_t to_span, const void* from, size_t from_span,
                        cudaMemcpyKind kind) {
  const Sides sides(to, from, kind);
  if (is_valid(to, to_span, sides.to_device) && is_valid(from, from_span, sides.from_device))
    return cudaSuccess;
  EMULATOR_CHECK(refused_copy(to, to_span, from, from_span, kind));
  return cudaErrorInvalidValue;
}

bool is_kind(cudaMemcpyKind kind) {
  return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

cudaError_t check(const void* to, size_t to_pitch, const void* from, size_t from_pitch,
                  const Extent& extent, cudaMemcpyKind kind) {
  if (!is_kind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (extent.empty()) return cudaSuccess;
  if (extent.height > 1 && (extent.width > to_pitch || extent.width > from_pitch))
    return cudaErrorInvalidPitchValue;
  return check_sides(to, extent.span(to_pitch), from, extent.span(from_pitch), kind);
}

// Both sides were checked.
cudaError_t do_copy(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                    const Extent& extent, cudaMemcpyKind kind,
                    [[maybe_unused]] const Order& order) {
  const Sides sides(to, from, kind);
  EMULATOR_CHECK(Work work);
  EMULATOR_CHECK(copy_submitted({to, to_pitch}, {from, from_pitch}, extent.width, extent.height,
                                order.stream, order.waits));
  {
    DeviceAccess access;
    access.open(to);
    access.open(from);
    const VariablesStay variables;
    char* const into = variables.place(to, sides.to_device);
    const char* const out_of = variables.place(from, sides.from_device);
    for (size_t row = 0; row < extent.height; ++row)
      std::memmove(into + row * to_pitch, out_of + row * from_pitch, extent.width);
  }
  host_goes_on();
  for (size_t row = 0; row < extent.height; ++row)
    EMULATOR_CHECK(copied(static_cast<char*>(to) + row * to_pitch,
                          static_cast<const char*>(from) + row * from_pitch, extent.width));
  EMULATOR_CHECK(copy_done({to, to_pitch}, extent.width, extent.height));
  if (in_arena(to) && in_arena(from))
    EMULATOR_CHECK(count_copy({to, to_pitch}, {from, from_pitch}, extent.width, extent.height));
  if (!sides.to_device) add_to_count(Count::kBytesToHost, extent.width * extent.height);
  return cudaSuccess;
}

// What the host waits for is in no graph.
cudaError_t refuse_waiting(const Order& order) {
  return is_any_capture() && order.waits ? refuse_in_capture(order.stream) : cudaSuccess;
}

// Does what run(stream) does, now or as a node.
template <typename Run>
cudaError_t submit_in(const Order& order, cudaGraphNodeType type, const Run& run) {
  if (order.waits) return run(order.stream);
  return submit(order.stream, type, type == cudaGraphNodeTypeMemset ? "memset" : "memcpy", run);
}

cudaError_t copy(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                 const Extent& extent, cudaMemcpyKind kind, const Order& order = {}) {
  cudaError_t error = refuse_waiting(order);
  if (error == cudaSuccess) error = check(to, to_pitch, from, from_pitch, extent, kind);
  if (error != cudaSuccess || extent.empty()) return error;
  return submit_in(order, cudaGraphNodeTypeMemcpy, [=](cudaStream_t stream) {
    return do_copy(to, to_pitch, from, from_pitch, extent, kind, {stream, order.waits});
  });
}

// Bytes of a row that get a value, whose elements have 1, 2 or 4.
void set_row(char* row, size_t width, unsigned value, unsigned element) {
  if (element == 1) {
    std::memset(row, static_cast<int>(value), width);
    return;
  }
  for (size_t at = 0; at < width; at += element) std::memcpy(row + at, &value, element);
}

cudaError_t check_set(void* ptr, size_t pitch, const Extent& extent) {
  if (extent.empty() || is_valid(ptr, extent.span(pitch), true)) return cudaSuccess;
  EMULATOR_CHECK(refused_copy(ptr, extent.span(pitch), nullptr, 0, cudaMemcpyHostToDevice));
  return cudaErrorInvalidValue;
}

cudaError_t do_set(void* ptr, size_t pitch, unsigned value, unsigned element, const Extent& extent,
                   [[maybe_unused]] const Order& order) {
  EMULATOR_CHECK(Work work);
  // The host waits only where the memory is its own.
  EMULATOR_CHECK(copy_submitted({ptr, pitch}, {nullptr, 0}, extent.width, extent.height,
                                order.stream, order.waits && !in_arena(ptr)));
  {
    DeviceAccess access;
    access.open(ptr);
    const VariablesStay variables;
    for (size_t row = 0; row < extent.height; ++row)
      set_row(variables.place(ptr, true) + row * pitch, extent.width, value, element);
  }
  host_goes_on();
  for (size_t row = 0; row < extent.height; ++row)
    EMULATOR_CHECK(written(static_cast<char*>(ptr) + row * pitch, extent.width));
  EMULATOR_CHECK(copy_done({ptr, pitch}, extent.width, extent.height));
  return cudaSuccess;
}

cudaError_t set(void* ptr, size_t pitch, int value, const Extent& extent, const Order& order = {}) {
  cudaError_t error = refuse_waiting(order);
  if (error == cudaSuccess) error = check_set(ptr, pitch, extent);
  if (error != cudaSuccess || extent.empty()) return error;
  return submit_in(order, cudaGraphNodeTypeMemset, [=](cudaStream_t stream) {
    return do_set(ptr, pitch, static_cast<unsigned>(value), 1, extent, {stream, order.waits});
  });
}

// A box of memory at a place in a larger one.
struct Box {
  char* ptr;
  size_t pitch, slice;

  Box(const cudaPitchedPtr& whole, const cudaPos& at)
      : ptr(static_cast<char*>(whole.ptr)), pitch(whole.pitch), slice(whole.pitch * whole.ysize) {
    if (ptr != nullptr) ptr += at.z * slice + at.y * pitch + at.x;
  }
  size_t span(const cudaExtent& extent) const {
    return (extent.depth - 1) * slice + (extent.height - 1) * pitch + extent.width;
  }
  // Whether rows and slices have room for those that are copied.
  bool has_room(const cudaExtent& extent) const {
    return (extent.height == 1 || extent.width <= pitch) &&
           (extent.depth == 1 || extent.height * pitch <= slice);
  }
};

bool is_empty(const cudaExtent& extent) {
  return extent.width == 0 || extent.height == 0 || extent.depth == 0;
}

// What is wrong with a copy of a box.
cudaError_t check_boxes(const cudaMemcpy3DParms& p) {
  if (p.srcArray != nullptr || p.dstArray != nullptr) return cudaErrorNotSupported;
  if (!is_kind(p.kind)) return cudaErrorInvalidMemcpyDirection;
  if (is_empty(p.extent)) return cudaSuccess;
  const Box to(p.dstPtr, p.dstPos), from(p.srcPtr, p.srcPos);
  if (!to.has_room(p.extent) || !from.has_room(p.extent)) return cudaErrorInvalidPitchValue;
  return check_sides(to.ptr, to.span(p.extent), from.ptr, from.span(p.extent), p.kind);
}

cudaError_t do_copy_box(const cudaMemcpy3DParms& p, const Order& order) {
  const Box to(p.dstPtr, p.dstPos), from(p.srcPtr, p.srcPos);
  for (size_t z = 0; z < p.extent.depth; ++z)
    do_copy(to.ptr + z * to.slice, to.pitch, from.ptr + z * from.slice, from.pitch,
            {p.extent.width, p.extent.height}, p.kind, order);
  return cudaSuccess;
}

cudaError_t copy_box(const cudaMemcpy3DParms& p, const Order& order) {
  cudaError_t error = refuse_waiting(order);
  if (error == cudaSuccess) error = check_boxes(p);
  if (error != cudaSuccess || is_empty(p.extent)) return error;
  return submit_in(order, cudaGraphNodeTypeMemcpy,
                   [=](cudaStream_t stream) { return do_copy_box(p, {stream, order.waits}); });
}

cudaError_t set_box(const cudaPitchedPtr& whole, int value, const cudaExtent& extent,
                    const Order& order) {
  const cudaError_t error = refuse_waiting(order);
  if (error != cudaSuccess || is_empty(extent)) return error;
  const Box box(whole, {0, 0, 0});
  if (!box.has_room(extent)) return cudaErrorInvalidPitchValue;
  if (!is_valid(box.ptr, box.span(extent), true)) {
    EMULATOR_CHECK(refused_copy(box.ptr, box.span(extent), nullptr, 0, cudaMemcpyHostToDevice));
    return cudaErrorInvalidValue;
  }
  return submit_in(order, cudaGraphNodeTypeMemset, [=](cudaStream_t stream) {
    for (size_t z = 0; z < extent.depth; ++z)
      do_set(box.ptr + z * box.slice, box.pitch, static_cast<unsigned>(value), 1,
             {extent.width, extent.height}, {stream, order.waits});
    return cudaSuccess;
  });
}

Extent rows_of(const cudaMemsetParams& p) { return {p.width * p.elementSize, p.height}; }

}  // namespace

cudaError_t check_copy(void* to, const void* from, size_t size, cudaMemcpyKind kind) {
  return check(to, size, from, size, {size, 1}, kind);
}

cudaError_t copy_now(void* to, const void* from, size_t size, cudaMemcpyKind kind,
                     cudaStream_t stream) {
  const cudaError_t error = check_copy(to, from, size, kind);
  if (error != cudaSuccess || size == 0) return error;
  return do_copy(to, size, from, size, {size, 1}, kind, {stream, false});
}

cudaError_t check_box(const cudaMemcpy3DParms& copy) { return check_boxes(copy); }

cudaError_t copy_box_now(const cudaMemcpy3DParms& copy, cudaStream_t stream) {
  const cudaError_t error = check_boxes(copy);
  if (error != cudaSuccess || is_empty(copy.extent)) return error;
  return do_copy_box(copy, {stream, false});
}

cudaError_t check_fill(const cudaMemsetParams& p) {
  if (p.elementSize != 1 && p.elementSize != 2 && p.elementSize != 4) return cudaErrorInvalidValue;
  if (p.width == 0 || p.height == 0) return cudaErrorInvalidValue;
  if (p.height > 1 && p.width * p.elementSize > p.pitch) return cudaErrorInvalidValue;
  return check_set(p.dst, p.pitch, rows_of(p));
}

cudaError_t fill_now(const cudaMemsetParams& p, cudaStream_t stream) {
  const cudaError_t error = check_fill(p);
  if (error != cudaSuccess) return error;
  return do_set(p.dst, p.pitch, p.value, p.elementSize, rows_of(p), {stream, false});
}

// The host's variable of the same name may be the other side of a copy between host and device.
// Else it is the device's wherever it lies there.
static cudaMemcpyKind kind_of(const void* other, cudaMemcpyKind kind, cudaMemcpyKind between) {
  return kind == between && !in_arena(other) ? kind : cudaMemcpyDefault;
}

cudaError_t copy_to_symbol(void* symbol, size_t symbol_size, const void* from, size_t size,
                           size_t offset, cudaMemcpyKind kind, cudaStream_t stream, bool waits) {
  EMULATOR_HOST_CALL_OF(waits ? "cudaMemcpyToSymbol" : "cudaMemcpyToSymbolAsync");
  if (sticky_error() != cudaSuccess) return sticky_error();
  if (offset > symbol_size || size > symbol_size - offset) return report(cudaErrorInvalidValue);
  if (!is_managed_variable(symbol, symbol_size)) add_symbol(symbol, symbol_size);
  return report(copy(static_cast<char*>(symbol) + offset, size, from, size, {size, 1},
                     kind_of(from, kind, cudaMemcpyHostToDevice), {stream, waits}));
}

cudaError_t copy_from_symbol(void* to, const void* symbol, size_t symbol_size, size_t size,
                             size_t offset, cudaMemcpyKind kind, cudaStream_t stream, bool waits) {
  EMULATOR_HOST_CALL_OF(waits ? "cudaMemcpyFromSymbol" : "cudaMemcpyFromSymbolAsync");
  if (sticky_error() != cudaSuccess) return sticky_error();
  if (offset > symbol_size || size > symbol_size - offset) return report(cudaErrorInvalidValue);
  if (!is_managed_variable(symbol, symbol_size)) add_symbol(symbol, symbol_size);
  return report(copy(to, size, static_cast<const char*>(symbol) + offset, size, {size, 1},
                     kind_of(to, kind, cudaMemcpyDeviceToHost), {stream, waits}));
}

cudaError_t symbol_address(void** ptr, const void* symbol, size_t symbol_size) {
  EMULATOR_RETURN_IF_STICKY();
  if (ptr == nullptr) return report(cudaErrorInvalidValue);
  add_symbol(symbol, symbol_size);
  *ptr = const_cast<void*>(symbol);
  return cudaSuccess;
}

cudaError_t check_stream(cudaStream_t stream) {
  EMULATOR_RETURN_IF_STICKY();
  return report(is_stream(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

}  // namespace emulator

using emulator::report;

cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind kind) {
  EMULATOR_RETURN_IF_STICKY();
  return report(emulator::copy(to, size, from, size, {size, 1}, kind));
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_stream(stream)) return report(cudaErrorInvalidResourceHandle);
  return report(emulator::copy(to, size, from, size, {size, 1}, kind, {stream, false}));
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  EMULATOR_RETURN_IF_STICKY();
  return report(emulator::copy(to, to_pitch, from, from_pitch, {width, height}, kind));
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_stream(stream)) return report(cudaErrorInvalidResourceHandle);
  return report(
      emulator::copy(to, to_pitch, from, from_pitch, {width, height}, kind, {stream, false}));
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device,
                           size_t size) {
  EMULATOR_RETURN_IF_STICKY();
  if (to_device != 0 || from_device != 0) return report(cudaErrorInvalidDevice);
  return cudaMemcpy(to, from, size, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                size_t size, cudaStream_t stream) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_stream(stream)) return report(cudaErrorInvalidResourceHandle);
  if (to_device != 0 || from_device != 0) return report(cudaErrorInvalidDevice);
  return cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemset(void* ptr, int value, size_t size) {
  EMULATOR_RETURN_IF_STICKY();
  return report(emulator::set(ptr, size, value, {size, 1}));
}

cudaError_t cudaMemsetAsync(void* ptr, int value, size_t size, cudaStream_t stream) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_stream(stream)) return report(cudaErrorInvalidResourceHandle);
  return report(emulator::set(ptr, size, value, {size, 1}, {stream, false}));
}

cudaError_t cudaMemset2D(void* ptr, size_t pitch, int value, size_t width, size_t height) {
  EMULATOR_RETURN_IF_STICKY();
  return report(emulator::set(ptr, pitch, value, {width, height}));
}

cudaError_t cudaMemset2DAsync(void* ptr, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_stream(stream)) return report(cudaErrorInvalidResourceHandle);
  return report(emulator::set(ptr, pitch, value, {width, height}, {stream, false}));
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* copy) {
  EMULATOR_RETURN_IF_STICKY();
  if (copy == nullptr) return report(cudaErrorInvalidValue);
  return report(emulator::copy_box(*copy, {}));
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream) {
  EMULATOR_RETURN_IF_STICKY();
  if (copy == nullptr) return report(cudaErrorInvalidValue);
  if (!emulator::is_stream(stream)) return report(cudaErrorInvalidResourceHandle);
  return report(emulator::copy_box(*copy, {stream, false}));
}

cudaError_t cudaMemset3D(cudaPitchedPtr box, int value, cudaExtent extent) {
  EMULATOR_RETURN_IF_STICKY();
  return report(emulator::set_box(box, value, extent, {}));
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr box, int value, cudaExtent extent,
                              cudaStream_t stream) {
  EMULATOR_RETURN_IF_STICKY();
  if (!emulator::is_stream(stream)) return report(cudaErrorInvalidResourceHandle);
  return report(emulator::set_box(box, value, extent, {stream, false}));
}
