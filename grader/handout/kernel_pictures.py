"""Pictures of kernels: threads and blocks, addresses, a reduction, tiles."""

from __future__ import annotations

from grader.handout.svg import Drawing

#: The example of the 2-D grid: a matrix in blocks of 4 x 4 threads. Test and text use them.
ROWS, COLUMNS, SIDE = 6, 10, 4
#: y and x of the thread that is worked out, and of its block.
THREAD, BLOCK = (1, 2), (1, 1)
#: The values of the example of a reduction.
SUMMED = (3, 1, 7, 0, 4, 1, 6, 3)
#: Threads and columns of the picture of addresses, floats in a sector of memory.
READERS, WIDTH, SECTOR = 8, 16, 8


def grid_2d() -> Drawing:
    """A matrix under a grid of blocks: the element of each thread, and threads without one."""
    cell, left, top = 38.0, 60.0, 48.0
    across, down = -(-COLUMNS // SIDE), -(-ROWS // SIDE)
    picture = Drawing(left + across * SIDE * cell + 16, top + down * SIDE * cell + 66)
    for y in range(down * SIDE):
        for x in range(across * SIDE):
            inside = y < ROWS and x < COLUMNS
            kind = ("blue", "green")[(x // SIDE + y // SIDE) % 2] if inside else "cell"
            place = left + x * cell, top + y * cell
            picture.rect(*place, cell, cell, kind)
            words = f"{y % SIDE},{x % SIDE}" if inside else "–"
            picture.label(place[0] + cell / 2, place[1] + cell / 2, words, "small")
    _block_frames(picture, across, down, cell, left, top)
    row, column = (b * SIDE + t for b, t in zip(BLOCK, THREAD, strict=True))
    picture.rect(left + column * cell, top + row * cell, cell, cell, "amber")
    words = f"{THREAD[0]},{THREAD[1]}"
    picture.label(left + (column + 0.5) * cell, top + (row + 0.5) * cell, words, "small bold")
    bottom = top + down * SIDE * cell
    words = "amber: thread y = {}, x = {} of block y = {}, x = {}".format(*THREAD, *BLOCK)
    picture.text(left, bottom + 20, words, "small", "start")
    words = f"row = {BLOCK[0]} · {SIDE} + {THREAD[0]} = {row},  column = {BLOCK[1]} · {SIDE} + "
    words += f"{THREAD[1]} = {column},  address = {row} · {COLUMNS} + {column} = "
    picture.text(left, bottom + 38, words + str(row * COLUMNS + column), "small", "start")
    picture.text(left, bottom + 56, "–: a thread past the edge: it must not read or write",
                 "small", "start")  # fmt: skip
    return picture


def _block_frames(
    picture: Drawing, across: int, down: int, cell: float, left: float, top: float
) -> None:
    """A frame around each block, its indices at the edges."""
    side = SIDE * cell
    for x in range(across):
        picture.label(left + (x + 0.5) * side, top - 30, f"blockIdx.x = {x}", "small")
        picture.label(left + (x + 0.5) * side, top - 12, "columns "
                      f"{x * SIDE} to {x * SIDE + SIDE - 1}", "tiny soft")  # fmt: skip
        for y in range(down):
            picture.rect(left + x * side, top + y * side, side, side, "frame")
    for y in range(down):
        middle = top + (y + 0.5) * side
        picture.label(left / 2, middle - 8, "blockIdx.y", "tiny")
        picture.label(left / 2, middle + 8, f"= {y}", "small")


def addresses() -> Drawing:
    """Which floats 8 threads read in one step: side by side, and a row of 16 apart."""
    cell, left = 34.0, 40.0
    picture = Drawing(left + WIDTH * cell + 10, 330)
    picture.text(left, 18, "a thread a column: in one step the threads read neighbours", "bold",
                 "start")  # fmt: skip
    _memory(picture, left, 30, cell, 1)
    sectors = len({thread // SECTOR for thread in range(READERS)})
    picture.text(left, 110, f"{READERS} floats wanted, {sectors} sector of 32 bytes moved", "small",
                 "start")  # fmt: skip
    picture.text(left, 150, "a thread a row: in one step they read a row apart", "bold", "start")
    _memory(picture, left, 162, cell, READERS)
    picture.text(left, 320, f"{READERS} floats wanted, {READERS} sectors of 32 bytes moved",
                 "small", "start")  # fmt: skip
    return picture


def _memory(picture: Drawing, left: float, top: float, cell: float, rows: int) -> None:
    """Rows of floats; `rows` is 1 for neighbours, else each thread reads the head of its row."""
    height = 26.0 if rows == 1 else 16.0
    for y in range(max(rows, 2) if rows == 1 else rows):
        for x in range(WIDTH):
            thread = (
                x if rows == 1 and y == 0 and x < READERS else y if rows > 1 and x == 0 else None
            )
            moved = (y == 0 and x < READERS) if rows == 1 else x < SECTOR
            kind = "amber" if thread is not None else "grey" if moved else "cell"
            picture.rect(left + x * cell, top + y * height, cell, height, kind)
            if thread is not None:
                middle = left + (x + 0.5) * cell, top + (y + 0.5) * height
                picture.label(*middle, f"t{thread}", "tiny")
        picture.text(left - 8, top + (y + 0.5) * height + 4, f"{y}", "tiny soft", "end")


def reduction_steps() -> list[list[int]]:
    """The values in shared memory before each halving and after the last."""
    values, steps, half = list(SUMMED), [list(SUMMED)], len(SUMMED) // 2
    while half:
        values[:half] = [values[t] + values[t + half] for t in range(half)]
        steps.append(list(values))
        half //= 2
    return steps


def reduction() -> Drawing:
    """A block adds up 8 values: half as many threads work in each step."""
    cell, left, top, gap = 58.0, 130.0, 34.0, 74.0
    steps = reduction_steps()
    picture = Drawing(left + len(SUMMED) * cell + 12, top + (len(steps) - 1) * gap + 44)
    for t in range(len(SUMMED)):
        picture.label(left + (t + 0.5) * cell, 16, f"[{t}]", "small soft")
    working = len(SUMMED)
    for row, values in enumerate(steps):
        y = top + row * gap
        for t, value in enumerate(values):
            kind = "green" if t < working else "grey"
            picture.rect(left + t * cell, y, cell, 28, kind)
            picture.label(left + (t + 0.5) * cell, y + 14, f"{value}")
        words = "shared memory" if row == 0 else f"{working} thread{'s' if working > 1 else ''} add"
        picture.text(left - 10, y + 19, words, "small", "end")
        working //= 2
        if working:
            _halving(picture, working, left, y + 28, cell, gap - 28)
    return picture


def _halving(
    picture: Drawing, working: int, left: float, y: float, cell: float, gap: float
) -> None:
    """Thread t adds element t + working to element t."""
    for t in range(working):
        target = left + (t + 0.5) * cell
        picture.arrow([(left + (t + working + 0.5) * cell, y), (target + 5, y + gap)])
        picture.arrow([(target, y), (target, y + gap)])
    picture.text(left - 10, y + gap / 2 + 4, "__syncthreads()", "mono", "end")


def tiles() -> Drawing:
    """C = A B in tiles: what one block reads in each turn of its loop."""
    unit, gap = 46.0, 70.0
    count, left, top = 4, 30.0, 40.0
    side = count * unit
    picture = Drawing(left + 2 * side + gap + 20, top + 2 * side + gap + 34)
    b_left, c_top = left + side + gap, top + side + gap
    _matrix(picture, b_left, top, unit, count, "B: K rows, N columns")
    _matrix(picture, left, c_top, unit, count, "A: M rows, K columns")
    _matrix(picture, b_left, c_top, unit, count, "C: M rows, N columns")
    row, column = 1, 2
    for turn in range(count):
        kind = "amber" if turn == 1 else "blue"
        picture.rect(left + turn * unit, c_top + row * unit, unit, unit, kind)
        picture.label(left + (turn + 0.5) * unit, c_top + (row + 0.5) * unit, f"{turn + 1}")
        picture.rect(b_left + column * unit, top + turn * unit, unit, unit, kind)
        picture.label(b_left + (column + 0.5) * unit, top + (turn + 0.5) * unit, f"{turn + 1}")
    picture.rect(b_left + column * unit, c_top + row * unit, unit, unit, "green")
    picture.label(b_left + (column + 0.5) * unit, c_top + (row + 0.5) * unit, "block", "small")
    middle = c_top + (row + 0.5) * unit
    picture.arrow([(left + side + 6, middle), (b_left - 6, middle)])
    picture.arrow([(b_left + (column + 0.5) * unit, top + side + 4),
                   (b_left + (column + 0.5) * unit, c_top - 24)])  # fmt: skip
    _tile_words(picture, left, top)
    return picture


def _tile_words(picture: Drawing, left: float, top: float) -> None:
    lines = ("turn k of the loop:", "1 both tiles k to shared memory", "2 __syncthreads()",
             "3 each thread adds T products", "4 __syncthreads()")  # fmt: skip
    for i, words in enumerate(lines):
        kind = "small bold" if i == 0 else "small"
        picture.text(left, top + 20 + 22 * i, words, kind, "start")


def _matrix(picture: Drawing, x: float, y: float, unit: float, count: int, words: str) -> None:
    for i in range(count):
        for j in range(count):
            picture.rect(x + j * unit, y + i * unit, unit, unit, "cell")
    picture.rect(x, y, count * unit, count * unit, "frame")
    picture.text(x + count * unit / 2, y - 8, words, "small")
