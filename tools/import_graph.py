"""Counts and draws who imports whom among the rooms of a package.

python tools/import_graph.py [PACKAGE] [--modules] [--svg FILE]

Prints the number of rooms, levels, arrows and circles. A room is a folder of the package, or a
module right in it; with --modules each module is a room of its own. An arrow is a pair of rooms of
which one imports the other; rooms that import each other, also by a detour, are a circle. The
lowest level imports no other room; each other room is one level above the highest that it imports.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import grimp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from grader.handout.svg import Drawing, layered, with_style

_WIDE, _NARROW, _STEP, _MARGIN = 116.0, 16.0, 64.0, 14.0
_BOX = (104.0, 28.0)


@dataclass(frozen=True)
class ImportGraph:
    """Rooms, from the lowest level up, and the rooms that each imports."""

    rooms: dict[str, frozenset[str]]

    @property
    def arrows(self) -> int:
        """Pairs of rooms of which the first imports the second."""
        return sum(map(len, self.rooms.values()))

    def reached(self, room: str) -> set[str]:
        """What a room imports, directly or by a detour."""
        found: set[str] = set()
        pending = [room]
        while pending:
            new = self.rooms[pending.pop()] - found
            found |= new
            pending += new
        return found

    @property
    def circles(self) -> list[set[str]]:
        """Groups of rooms that import each other."""
        reached = {room: self.reached(room) for room in self.rooms}
        groups: list[set[str]] = []
        for room, others in reached.items():
            if room in others and not any(room in group for group in groups):
                groups.append({room} | {each for each in others if room in reached[each]})
        return groups

    @property
    def levels(self) -> dict[str, int]:
        """Room -> its level, from 0 up; rooms of one circle share theirs."""
        groups = [frozenset(group) for group in self.circles]
        home = {room: group for group in groups for room in group}
        found: dict[str, int] = {}

        def level(room: str) -> int:
            if room not in found:
                group = home.get(room, frozenset([room]))
                below = {other for each in group for other in self.rooms[each]} - group
                highest = max((level(other) for other in below), default=-1)
                found.update(dict.fromkeys(group, highest + 1))
            return found[room]

        return {room: level(room) for room in self.rooms}

    def essential(self) -> dict[str, set[str]]:
        """The imports that do not follow from others: without those that a detour makes, too."""
        return {
            room: {one for one in used if not any(one in self.reached(o) for o in used - {one})}
            for room, used in self.rooms.items()
        }

    def summary(self) -> str:
        """The figures in one sentence."""
        height = 1 + max(self.levels.values())
        circles = len(self.circles) or "no"
        return (
            f"{len(self.rooms)} rooms on {height} levels, {self.arrows} arrows, "
            f"{circles} circle{'s' * (circles != 1)}"
        )

    def svg(self) -> str:
        """The picture: who imports stands above, and arrows that follow from others are left
        out."""
        if self.circles:
            raise ValueError(f"it has circles: {self.circles}; hint: they can't be drawn in levels")
        levels = self.levels
        order = sorted(sorted(self.rooms, reverse=True), key=lambda room: -levels[room])
        number = {room: at for at, room in enumerate(order)}
        above: dict[int, list[int]] = {at: [] for at in number.values()}
        for room, used in self.essential().items():
            for each in used:
                above[number[each]].append(number[room])
        layout = layered({at: sorted(rooms) for at, rooms in above.items()}, _WIDE, _NARROW)

        def place(point: tuple[float, int]) -> tuple[float, float]:
            return point[0] + _MARGIN + _BOX[0] / 2, point[1] * _STEP + _MARGIN + _BOX[1] / 2

        bends = [bend for line in layout.bends.values() for bend in line]
        width = max(x for x, _ in [*layout.places.values(), *bends]) + _BOX[0] + 2 * _MARGIN
        drawing = Drawing(width, (layout.layers - 1) * _STEP + _BOX[1] + 2 * _MARGIN)
        half = _BOX[1] / 2
        for (upper, lower), line in layout.bends.items():
            (x0, y0), (x1, y1) = place(layout.places[upper]), place(layout.places[lower])
            between = [(x, y + side) for x, y in map(place, line) for side in (-half, half)]
            drawing.arrow([(x0, y0 + half), *between, (x1, y1 - half)], "thin")
        for room, at in number.items():
            x, y = place(layout.places[at])
            drawing.rect(x - _BOX[0] / 2, y - half, *_BOX, "blue", 4)
            drawing.label(x, y, room)
        return drawing.svg(f"Rooms and their imports: {self.summary()}")


def import_graph(package: str, by_module: bool = False) -> ImportGraph:
    """The graph of a package that Python can find."""
    graph = grimp.build_graph(package, cache_dir=None)
    children = graph.find_children(package)
    if by_module:
        names = {name for name in graph.modules if not graph.find_children(name)}
    else:
        names = children
    room = {
        each: name for name in names for each in ({name} | (graph.find_descendants(name) - names))
    }
    found: dict[str, set[str]] = {name.removeprefix(f"{package}."): set() for name in names}
    for module, name in room.items():
        for used in graph.find_modules_directly_imported_by(module):
            other = room.get(used, name)
            if other != name:
                found[name.removeprefix(f"{package}.")].add(other.removeprefix(f"{package}."))
    rooms = {name: frozenset(used) for name, used in found.items() if name != "__main__"}
    levels = ImportGraph(rooms).levels
    return ImportGraph({name: rooms[name] for name in sorted(rooms, key=lambda n: (levels[n], n))})


def main() -> None:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", nargs="?", default="grader")
    parser.add_argument("--modules", action="store_true", help="each module is a room of its own")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw it there")
    options = parser.parse_args()
    graph = import_graph(options.package, options.modules)
    print(graph.summary())
    if options.svg:
        options.svg.write_text(with_style(graph.svg()))


if __name__ == "__main__":
    main()
