"""The rules by which blocks find room on a multiprocessor.

They are those of NVIDIA's cuda_occupancy.h (CUDA 13), without settings of the cache: a kernel gets
as much shared memory as the multiprocessor has. Registers are given out to warps, 256 at a time,
from the quarter of the multiprocessor on which a warp runs.
"""

import dataclasses

WARP, QUARTERS = 32, 4
#: Registers of a multiprocessor, of a thread at most, and those that a warp gets at a time.
REGISTERS, MOST_REGISTERS, REGISTERS_AT_ONCE = 65536, 255, 256
MOST_THREADS = 1024
#: What may be too little, in the order in which it is told.
RESOURCES = ("warps", "blocks", "registers", "shared memory")


@dataclasses.dataclass(frozen=True)
class Multiprocessor:
    """What one has room for, by compute capability.

    Attributes:
        warps, blocks: at most at a time.
        shared: bytes of shared memory, and the most of them that one block may have.
        reserved: bytes of shared memory that each block takes for the system.
        granularity: shared memory is given out in multiples of it.
    """

    capability: str
    warps: int
    blocks: int
    shared: int
    reserved: int = 1024
    granularity: int = 128

    @property
    def most_shared(self):
        """Bytes that a block may have."""
        return self.shared - self.reserved


CAPABILITIES = {
    each.capability: each
    for each in (
        Multiprocessor("7.0", 64, 32, 96 * 1024, 0, 256),
        Multiprocessor("7.5", 32, 16, 64 * 1024, 0, 256),
        Multiprocessor("8.0", 64, 32, 164 * 1024),
        Multiprocessor("8.6", 48, 16, 100 * 1024),
        Multiprocessor("8.7", 48, 16, 164 * 1024),
        Multiprocessor("8.9", 48, 24, 100 * 1024),
        Multiprocessor("9.0", 64, 32, 228 * 1024),
        Multiprocessor("10.0", 64, 32, 228 * 1024),
        Multiprocessor("12.0", 48, 24, 100 * 1024),
    )
}


@dataclasses.dataclass(frozen=True)
class Launch:
    """What a launch asks for.

    Attributes:
        threads: of a block.
        registers: of a thread.
        shared: bytes of a block, static and dynamic.
    """

    threads: int
    registers: int
    shared: int = 0

    @property
    def warps(self):
        """Of a block."""
        return -(-self.threads // WARP)


@dataclasses.dataclass(frozen=True)
class Occupancy:
    """How many blocks of a launch a multiprocessor holds at a time.

    Attributes:
        blocks: that many.
        warps: of these blocks.
        share: of the warps that there is room for, from 0 to 1.
        room: resource -> how many blocks it alone has room for.
    """

    blocks: int
    warps: int
    share: float
    room: dict

    @property
    def limits(self):
        """The resources that allow no more; none where the multiprocessor is full of warps."""
        if self.share == 1:
            return []
        return [name for name, blocks in self.room.items() if blocks == self.blocks]


def occupancy(launch, on):
    """The Occupancy of a launch on a Multiprocessor.

    Raises:
        ValueError: no GPU starts such a launch.
    """
    _check(launch, on)
    room = {
        "warps": on.warps // launch.warps,
        "blocks": on.blocks,
        "registers": _room_for_registers(launch),
        "shared memory": _room_for_shared(launch, on),
    }
    blocks = min(room.values())
    warps = blocks * launch.warps
    return Occupancy(blocks, warps, warps / on.warps, room)


def _room_for_registers(launch):
    of_warp = _up(launch.registers * WARP, REGISTERS_AT_ONCE)
    if not of_warp:
        return MOST_THREADS
    # A launch is refused unless its warps, made a multiple of the quarters, fit.
    if of_warp * _up(launch.warps, QUARTERS) > REGISTERS:
        return 0
    return REGISTERS // QUARTERS // of_warp * QUARTERS // launch.warps


def _room_for_shared(launch, on):
    taken = _up(launch.shared + on.reserved, on.granularity)
    return on.shared // taken if taken else MOST_THREADS


def _up(value, step):
    return -(-value // step) * step


def _check(launch, on):
    if not 1 <= launch.threads <= MOST_THREADS:
        raise ValueError("%d threads a block; hint: 1 to %d" % (launch.threads, MOST_THREADS))
    if not 0 <= launch.registers <= MOST_REGISTERS:
        raise ValueError("%d registers; hint: 1 to %d" % (launch.registers, MOST_REGISTERS))
    if not 0 <= launch.shared <= on.most_shared:
        said = "%d bytes of shared memory a block; hint: capability %s has at most %d"
        raise ValueError(said % (launch.shared, on.capability, on.most_shared))


def changes(launch, on):
    """[(a launch that differs in one number, its Occupancy)], each fuller than this one.

    The nearest number of registers and of bytes that gives a block more, and the number of threads,
    a multiple of a warp, with the most warps; of these the nearest.
    """
    now, found = occupancy(launch, on), []
    for name, values in (
        ("registers", range(launch.registers - 1, 0, -1)),
        ("shared", range(launch.shared - 1, -1, -1)),
    ):
        for value in values:
            other = dataclasses.replace(launch, **{name: value})
            there = occupancy(other, on)
            if there.share > now.share:
                found.append((other, there))
                break
    best = max(
        (dataclasses.replace(launch, threads=each) for each in range(WARP, MOST_THREADS + 1, WARP)),
        key=lambda each: (occupancy(each, on).share, -abs(each.threads - launch.threads)),
    )
    if occupancy(best, on).share > now.share:
        found.append((best, occupancy(best, on)))
    return found
