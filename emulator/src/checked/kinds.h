// clang-format off
/*!
 * \file kinds.h
 * \brief The table of findings: what the runtime calls a kind, and the words that are said of it.
 *
 * finding.h makes an enumeration of the rows. findings/kinds.py reads the same lines as Python, in
 * which a row is a call too: so rows have names and strings alone, and comments lines of their own.
 *
 *   KIND(name, "kind", "title", "cause", "hint", "sentence")
 *     title: a few words; cause: one sentence; hint: one, printed behind "hint:"; sentence: who did
 *     what, for kinds that are not the access of one thread, see template_text of
 *     findings/sentences.py
 *   CANDIDATE(name, "kind", becomes)
 *     what turns out to be another kind, or nothing (kNone), once its lines are known
 *   TEXT(NAME, "text")
 *     what several rows say
 */

TEXT(PAST,
     "There are often more threads than elements, because the number of blocks is rounded up, or "
     "an index is computed with the stride of another buffer.")
TEXT(GUARD,
     "compare the index with the number of elements of this buffer (`if (i < n)`), and work out "
     "by hand what the index is in the thread named above.")
TEXT(SHARED,
     "An index into shared memory often grows with the block or with the input, while the array's"
     " size stands in its declaration or in the third argument of the launch.")
TEXT(SHARED_HINT,
     "compare the array's size with the largest index that a thread of this block computes; a "
     "dynamic array (`extern __shared__`) has as many bytes as the launch asks for.")
TEXT(MISALIGNED,
     "A GPU accesses N bytes at once only at addresses that N divides; a float4 needs a multiple "
     "of 16, a float2 of 8.")

CANDIDATE(kBarrierPassedBy, "barrier passed by", kBarrierNotReached)
CANDIDATE(kPlainReadGlobal, "plain read global", kRaceGlobal)
CANDIDATE(kPlainReadShared, "plain read shared", kRaceShared)
CANDIDATE(kAtomicBehindARead, "atomic behind a read", kNone)

KIND(kOutOfBoundsReadGlobal, "out-of-bounds read global",
     "Read outside of a buffer in global memory",
     PAST,
     GUARD,
     "")

KIND(kOutOfBoundsWriteGlobal, "out-of-bounds write global",
     "Write outside of a buffer in global memory",
     PAST,
     GUARD,
     "")

KIND(kOutOfBoundsReadShared, "out-of-bounds read shared",
     "Read outside of shared memory",
     SHARED,
     SHARED_HINT,
     "")

KIND(kOutOfBoundsWriteShared, "out-of-bounds write shared",
     "Write outside of shared memory",
     SHARED,
     SHARED_HINT,
     "")

KIND(kOutOfBoundsReadConstant, "out-of-bounds read constant",
     "Read outside of constant memory",
     "An index into a `__constant__` array is larger than the array that was declared.",
     "compare the index in the thread named above with the size in the `__constant__` line.",
     "")

KIND(kRowOverrun, "row overrun",
     "Index past the end of a row",
     "An index of an array with several dimensions is larger than its dimension, so the access "
     "lands in the next row: inside of the array, but at another element.",
     "check each index against its own dimension, and whether row and column are the right way "
     "round.",
     "")

KIND(kMisalignedAccessGlobal, "misaligned access global",
     "Misaligned access to global memory",
     MISALIGNED,
     "look at the pointer that was cast to a wider type, and at what was added to it before; rows"
     " whose length is no multiple of the vector need plain accesses.",
     "")

KIND(kMisalignedAccessShared, "misaligned access shared",
     "Misaligned access to shared memory",
     MISALIGNED,
     "give the array an alignment (`__shared__ __align__(16) float tile[...]`), and keep the "
     "offsets of its parts multiples of the access's size.",
     "")

KIND(kRaceGlobal, "race global",
     "Race in global memory",
     "The order of the two accesses is not fixed, so the result may change from run to run and "
     "from GPU to GPU. `__syncthreads()` orders the threads of one block alone, never two blocks.",
     "give each thread elements of its own, combine with `atomicAdd` and its like, or put the "
     "second step into a second kernel; within a block, `__syncthreads()` between the two lines "
     "may be enough.",
     "")

KIND(kRaceShared, "race shared",
     "Race in shared memory",
     "The order of the two accesses is not fixed, so the result may change from run to run and "
     "from GPU to GPU. Often a barrier is missing after the tile was filled, or before it is "
     "filled again in the next turn of a loop.",
     "put `__syncthreads()` between the two lines where every thread of the block reaches it "
     "(`__syncwarp()` if both threads are of one warp); if both add to one element, use an atomic"
     " function.",
     "")

KIND(kBarrierNotReached, "barrier not reached",
     "Barrier that not all threads reach",
     "Some threads of the block wait at the barrier while others go round it, by a branch, a "
     "`return`, or a loop that ends earlier for them.",
     "move the `__syncthreads()` out of the branch, and let the condition cover only the work "
     "before and after it.",
     "{who} waits at a barrier that {others}")

KIND(kDifferentBarriers, "different barriers",
     "Threads of one warp wait at different barriers",
     "The threads took different ways and met two `__syncthreads()` that are not one and the "
     "same; what a GPU does then is undefined.",
     "let all threads of the block pass one and the same barrier, outside of the branches.",
     "{who} waits at one barrier, and another thread of its warp at another")

KIND(kBarriersOfTwoWarps, "barriers of two warps",
     "Warps of one block wait at different barriers",
     "The warps took different ways and met two `__syncthreads()` that are not one and the same. "
     "Today's GPUs count who arrives, wherever; CUDA allows a barrier under a condition only if "
     "all threads of the block find the same.",
     "let all threads of the block pass one and the same barrier, outside of the branches.",
     "{who} waits at one barrier, and a thread of another warp at another")

KIND(kLaneNotNamed, "lane not in its mask",
     "Warp function whose mask leaves out who calls it",
     "A lane calls a `..._sync` function with a mask that does not name it; what the function does "
     "then is undefined.",
     "let the mask name every lane that comes to this line: `0xffffffff` where all do, else what "
     "`__ballot_sync` gave before the branch.",
     "{who} calls a function of the warp whose mask does not name it")

KIND(kLanesMissing, "lanes missing",
     "Warp function whose mask does not fit the lanes that call it",
     "The mask of a `..._sync` function names lanes that were elsewhere, in another branch or "
     "already at their end.",
     "call the function before the branch, or compute the mask with `__ballot_sync` where all "
     "lanes still are; also look at the last warp of the block.",
     "{who} calls a function of the warp whose mask does not fit the lanes there")

KIND(kShuffleFromAnAbsentLane, "shuffle from an absent lane",
     "Value shuffled from a lane that is not there",
     "The lane has returned, has left the loop, the block is too small for it, or the mask of the"
     " shuffle does not name it; its value is then undefined, and a sum of it wrong.",
     "let all 32 lanes come to the shuffle, with 0 (or what changes nothing) where there is no "
     "element: put the shuffle behind the `if` and the loop, not into them, and round the block "
     "up to a multiple of 32.",
     "{who} takes a value from a lane that is not there")

KIND(kUninitialisedReadGlobal, "uninitialised read global",
     "Read of global memory that nobody wrote",
     "`cudaMalloc` leaves memory as it was; either the copy or kernel that should fill this part "
     "did not reach it, or an accumulator was never set to zero.",
     "look at who should write this element: the size of the copy is in bytes, the last block may"
     " be missing, and `+=` needs a first value (`cudaMemset`).",
     "")

KIND(kUnwrittenResult, "unwritten result",
     "Result that no kernel wrote",
     "The copy brings elements to the host that no kernel, copy or `cudaMemset` ever wrote, and "
     "the host goes on with them; often the grid is too small, or a guard leaves out the end.",
     "count threads and elements: (n + block - 1) / block blocks are needed, not n / block; or "
     "copy only what was written.",
     "the host reads {element}, which came with a copy and was never written")

KIND(kUninitialisedReadShared, "uninitialised read shared",
     "Read of shared memory that nobody wrote",
     "Shared memory has no first value in any block; often only some threads load, or the tile is"
     " larger at the edge than what was loaded.",
     "let every element that is read be written first, with zero where the input ends, and put "
     "`__syncthreads()` behind it.",
     "")

KIND(kHostPointerInKernel, "host pointer in kernel",
     "Kernel uses memory of the host",
     "A pointer from `malloc`, `new`, a vector or a variable of the host was passed to the "
     "kernel, or stands in a table or struct that was; a null pointer was never allocated.",
     "allocate with `cudaMalloc`, copy with `cudaMemcpy`, and pass the pointer to that; look at "
     "pointers inside of structs too.",
     "")

KIND(kDevicePointerOnHost, "device pointer on host",
     "Host uses memory of the device",
     "Memory from `cudaMalloc` was read or written outside of a kernel, which ends a program on a"
     " real GPU.",
     "copy it to the host with `cudaMemcpy(..., cudaMemcpyDeviceToHost)` first, or do this work "
     "in a kernel.",
     "")

KIND(kCopyPastTheEnd, "copy past the end",
     "Copy past the end of a buffer",
     "The size of a copy is in bytes, and has to fit into the source and into the target; here it"
     " is larger than one of them.",
     "compare the size given here with both allocations: is `* sizeof(float)` in one place and "
     "not in the other, or there twice?",
     "a copy or fill of {size} goes past the end of {sized}{start}")

KIND(kCopyInTheWrongDirection, "copy in the wrong direction",
     "Copy in the wrong direction",
     "The last argument of `cudaMemcpy` does not match where the two pointers lead; the target "
     "comes first, then the source.",
     "check the order of the pointers and the direction, or say `cudaMemcpyDefault`.",
     "a copy says another direction than its pointers have")

KIND(kUseAfterFree, "use after free",
     "Use of freed memory",
     "A pointer was still used after `cudaFree` gave its memory back, in a kernel, a copy or a "
     "copy of the pointer.",
     "free the buffer behind its last use; the lines above say where it was freed.",
     "")

KIND(kDoubleFree, "double free",
     "Memory freed twice",
     "Two owners free the same pointer, or a clean-up runs twice.",
     "let one place own the buffer, and set the pointer to `nullptr` once it is freed.",
     "{sized} is freed again")

KIND(kLeak, "leak",
     "Memory never freed",
     "The program ended, and this buffer had not been given back; an early `return` or a buffer "
     "allocated in every turn of a loop are common ways to it.",
     "call `cudaFree` on every way out of the function, or allocate once and keep the buffer.",
     "{sized} was never freed")

KIND(kCublasHandleLeaked, "cublas handle leaked",
     "cuBLAS handle never destroyed",
     "`cublasCreate` was called without a `cublasDestroy` for its handle; each handle holds "
     "memory of the GPU, and making one takes long.",
     "make one handle, keep it for all calls, and destroy it at the end.",
     "a cuBLAS handle was never destroyed")

KIND(kLaunchErrorUnread, "launch error unread",
     "Error of a launch that nobody read",
     "A launch returns nothing: when the GPU refuses it, the kernel never runs, and only "
     "`cudaGetLastError()` says so.",
     "call `cudaGetLastError()` behind the launch and pass on what it returns; then look at the "
     "grid, the block (at most 1,024 threads) and the shared memory of this launch.",
     "{launch} failed, and nobody read its error")

KIND(kCallErrorUnread, "call error unread",
     "Error of a call that nobody read",
     "The call failed, so what it was to do was not done, and the program went on: neither was "
     "the value that it returns looked at, nor did `cudaGetLastError()` ask for it.",
     "look at the value of every call, by a macro that stops the program with the line and "
     "`cudaGetErrorString(error)`.",
     "a call failed, and nobody read its error")

KIND(kAssertionFailed, "assertion failed",
     "Assertion failed",
     "The program itself says that this must not happen; in a kernel it ends the launch, and "
     "every call after it fails.",
     "look at the values that the condition compares, in the thread named above.",
     "{who} does not meet a condition of the program")

KIND(kLaunchTimeout, "launch timeout",
     "Kernel that does not end",
     "A loop whose condition never changes, or that waits for what no thread writes, or not as long "
     "as this one waits.",
     "look at what ends the loop, and whether each turn changes it, also for the last elements; "
     "what another thread writes is read as volatile or by an atomic function, and threads of a "
     "block rather wait at a barrier. Work that is only slow gets more time by "
     "EMULATOR_LAUNCH_SECONDS.",
     "{who} was still in this loop when the launch was stopped")

KIND(kStackOverflow, "stack overflow",
     "Stack of a thread overflowed",
     "A thread of a kernel has a small stack, for its local arrays and for functions that call "
     "each other.",
     "look for a recursion without an end, and for large local arrays: those belong into shared "
     "or global memory.",
     "{who} needs more stack than there is")

KIND(kUnsynchronisedAccess, "unsynchronised access",
     "Access while work on it is still under way",
     "Kernels and asynchronous copies return before they are done, and two streams wait for each "
     "other only when told to.",
     "wait before the access (`cudaStreamSynchronize`, `cudaDeviceSynchronize`), or make one "
     "stream wait for the other with `cudaStreamWaitEvent`.",
     "")

KIND(kUnorderedNodes, "unordered nodes of a graph",
     "Nodes of a graph use the same memory in no order",
     "No edges lead from one of these nodes to the other, and one of them writes: they may run in "
     "either order, or at once. While streams are captured, an edge comes from the order within a "
     "stream, and from events.",
     "record an event behind the first (`cudaEventRecord`) and wait for it in the stream of the "
     "second (`cudaStreamWaitEvent`) while they are captured; between nodes made by hand, "
     "`cudaGraphAddDependencies`.",
     "")

KIND(kSharedMemoryOver48KB, "shared memory over 48 KB",
     "More than 48 KB of shared memory",
     "A block gets 48 KB unless the kernel was allowed more beforehand, so a real GPU refuses "
     "this launch.",
     "use smaller tiles, or allow more with `cudaFuncSetAttribute(kernel, "
     "cudaFuncAttributeMaxDynamicSharedMemorySize, bytes)` before the launch.",
     "{a_block} uses more than 48 KB of shared memory")

KIND(kUncoalescedAccess, "advice: uncoalesced access",
     "Uncoalesced access",
     "The lanes of a warp access addresses far apart, so that the GPU moves many pieces of 32 "
     "bytes and uses little of each.",
     "let neighbouring threads (`threadIdx.x`) access neighbouring elements: swap which index "
     "runs along the row, or pass through a tile in shared memory, of an odd number of columns "
     "(`tile[32][33]`), so that no two lanes meet in one bank.",
     "{lanes} access addresses far apart")

KIND(kBankConflict, "advice: bank conflict",
     "Bank conflict",
     "Shared memory has 32 banks of 4 bytes side by side; lanes that want different words of one "
     "bank wait for each other.",
     "pad the rows of the tile by one element (`tile[32][33]`), or change which index "
     "`threadIdx.x` runs along.",
     "{lanes} access different words of one bank")

KIND(kDivergentWarp, "advice: divergent warp",
     "Divergent warp",
     "Lanes of one warp take both ways of this branch, so the warp runs one after the other.",
     "let the condition change from warp to warp (`threadIdx.x / 32`) rather than from lane to "
     "lane, where the work allows it.",
     "{lanes} take different ways")

KIND(kLowOccupancy, "advice: low occupancy",
     "Low occupancy",
     "Few warps fit on each multiprocessor, or the grid has too few blocks, so there is little "
     "else to do while memory answers.",
     "try blocks of 128 to 256 threads, a multiple of 32, less shared memory per block, or more "
     "blocks; measure, since some kernels are fast all the same.",
     "{kernel} leaves much of the GPU idle")
