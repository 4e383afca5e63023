"""Finds the source line of a machine instruction, by the debug information that -g left.

On Linux pyelftools reads it (DWARF 4 and 5), on macOS `atos`. Without them a place is None.
"""

import bisect
import collections
import functools
import math
import os
import re
import shutil
import subprocess

try:
    from elftools.common.exceptions import ELFError
    from elftools.dwarf.descriptions import describe_form_class
    from elftools.elf.elffile import ELFFile
except ImportError:
    ELFFile = None


class Place(collections.namedtuple("Place", "file line")):
    """A line of a source file, counted from 1. The file's path is as debug information has it."""

    #: Tells apart what stands on one line: a column of the text that was compiled, 0 if unknown.
    column = 0

    @classmethod
    def of(cls, file, line, column):
        """A place whose column is known."""
        place = cls(file, line)
        place.column = column
        return place


# Instructions start..end-1 come of a line.
Row = collections.namedtuple("Row", "start end file line column")
# A function's body, put in place of its call: address ranges, their size, the call's place.
Inlined = collections.namedtuple("Inlined", "size ranges place")

ATOS = re.compile(r"\((.+):(\d+)\)\s*$")


# Where headers lie that come with a compiler or a system.
SYSTEM = ("/usr/include/", "/usr/local/include/", "/usr/lib/")


def is_emulator_header(path):
    """Whether a file belongs to the emulated GPU, so that no student wrote it."""
    return "/emulator/include/" in path.replace("\\", "/")


def is_foreign(place):
    """Whether no student wrote what stands at a place: it is a header of ours or the system's."""
    return is_emulator_header(place.file) or place.file.startswith(SYSTEM)


def own_frames(frames):
    """The places among nested calls that a student wrote; all of them if there are none."""
    return [place for place in frames if not is_foreign(place)] or frames


class Module:
    """The debug information of a library or program."""

    def __init__(self, elf):
        dwarf = elf.get_dwarf_info()
        loaded = [s["p_vaddr"] for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"]
        self.base = min(loaded, default=0)  # 0, unless its place in memory is fixed
        self.units = {unit.cu_offset: Unit(dwarf, unit) for unit in dwarf.iter_CUs()}
        self.ranges = sorted(self.read_ranges(dwarf.get_aranges()))

    def read_ranges(self, table):
        """The addresses of each unit, as (start, end, unit): from the table that GCC makes of them,
        else, which takes longer, from the units themselves."""
        listed = table.entries if table else []
        known = {entry.info_offset for entry in listed}
        for entry in listed:
            yield entry.begin_addr, entry.begin_addr + entry.length, entry.info_offset
        for offset, unit in self.units.items():
            if offset not in known:
                yield from ((start, end, offset) for start, end in unit.ranges(unit.top))

    def frames(self, address):
        """The place of an instruction, so many bytes from the start of the module, and behind it
        where the functions were called that the compiler put there, the innermost first."""
        address += self.base
        i = bisect.bisect_right(self.ranges, (address, math.inf)) - 1
        if i < 0 or address >= self.ranges[i][1]:
            return []
        return self.units[self.ranges[i][2]].frames(address)


class Unit:
    """The debug information of a compiled source, read when it is first asked for."""

    def __init__(self, dwarf, unit):
        self.dwarf, self.unit = dwarf, unit

    @functools.cached_property
    def top(self):
        """The entry of the unit itself."""
        return self.unit.get_top_DIE()

    @functools.cached_property
    def program(self):
        """The program that makes the table of lines, or None."""
        return self.dwarf.line_program_for_CU(self.unit)

    @functools.cached_property
    def files(self):
        """The paths that the table of lines counts."""
        return paths_of(self.top, self.program.header) if self.program else []

    @functools.cached_property
    def rows(self):
        """The table of lines, by address."""
        return sorted(self.read_rows()) if self.program else []

    @functools.cached_property
    def inlined(self):
        """All inlined functions, the smallest first."""
        return sorted(self.read_inlined())

    def read_rows(self):
        """The lines of the unit."""
        previous, line = None, 0
        for entry in self.program.get_entries():
            state = entry.state
            if state is None:
                continue
            # Functions that the linker left out stand at address 0.
            if previous is not None and previous.address and state.address > previous.address:
                line = previous.line or line  # 0: no line of its own
                file = self.path(previous.file)
                yield Row(previous.address, state.address, file, line, previous.column)
            previous = None if state.end_sequence else state
            line = 0 if state.end_sequence else line

    def path(self, index):
        """A file of the unit, or "" if there is no such."""
        return self.files[index] if 0 <= index < len(self.files) else ""

    def frames(self, address):
        """As a module's, of an address in the unit."""
        i = bisect.bisect_right(self.rows, (address, math.inf)) - 1
        if i < 0 or address >= self.rows[i].end or not self.rows[i].line:
            return []
        row = self.rows[i]
        return [Place.of(row.file, row.line, row.column), *self.calls_of(address)]

    def calls_of(self, address):
        """The calls of the inlined functions that an instruction belongs to."""
        return [
            place
            for _, ranges, place in self.inlined
            if place.line and any(start <= address < end for start, end in ranges)
        ]

    def read_inlined(self):
        """All inlined functions of the unit."""
        for entry in self.unit.iter_DIEs():
            if entry.tag != "DW_TAG_inlined_subroutine":
                continue
            ranges = self.ranges(entry)
            file, line, column = (
                entry.attributes.get("DW_AT_call_" + what) for what in ("file", "line", "column")
            )
            if ranges and file and line:
                path = self.path(file.value)
                place = Place.of(path, line.value, column.value if column else 0)
                yield Inlined(sum(end - start for start, end in ranges), ranges, place)

    def ranges(self, entry):
        """The addresses of an entry, as pairs."""
        low, high = entry.attributes.get("DW_AT_low_pc"), entry.attributes.get("DW_AT_high_pc")
        if low and high:
            relative = describe_form_class(high.form) == "constant"
            return [(low.value, high.value + (low.value if relative else 0))]
        listed, lists = entry.attributes.get("DW_AT_ranges"), self.dwarf.range_lists()
        if listed is None or lists is None:
            return []
        base = self.top.attributes.get("DW_AT_low_pc")
        found = lists.get_range_list_at_offset(listed.value, self.unit)
        return absolute(found, base.value if base else 0)


def absolute(entries, base):
    """Pairs of addresses from a range list."""
    found = []
    for entry in entries:
        if hasattr(entry, "base_address"):
            base = entry.base_address
        else:
            offset = 0 if getattr(entry, "is_absolute", False) else base
            found.append((entry.begin_offset + offset, entry.end_offset + offset))
    return found


def text_of(value):
    """A name of the debug information as str."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def paths_of(top, header):
    """The paths of a unit's files, so that a file's number is its index."""
    built_in = top.attributes.get("DW_AT_comp_dir")
    built_in = text_of(built_in.value) if built_in else ""
    folders = [text_of(folder) for folder in header["include_directory"]]
    names = [(text_of(entry.name), entry.dir_index) for entry in header["file_entry"]]
    if header["version"] < 5:  # counts from 1; 0 is where the compiler ran
        folders, names = [built_in] + folders, [("", 0)] + names
    paths = []
    for name, folder in names:
        folder = folders[folder] if folder < len(folders) else ""
        paths.append(os.path.normpath(os.path.join(built_in, folder, name)) if name else "")
    return paths


def open_module(path):
    """The debug information of a file, or None."""
    if ELFFile is None:
        return None
    try:
        with open(path, "rb") as file:
            elf = ELFFile(file)
            return Module(elf) if elf.has_dwarf_info() else None
    except (OSError, ELFError):
        return None


def ask_atos(path, address):
    """The place of an instruction by macOS's own tool, or None."""
    if shutil.which("atos") is None:
        return None
    command = ["atos", "-fullPath", "-o", path, "-offset", hex(address)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    match = ATOS.search(done.stdout)
    return Place(match.group(1), int(match.group(2))) if match else None


def can_read_lines():
    """Whether there is anything that knows the lines of addresses."""
    return ELFFile is not None or shutil.which("atos") is not None


class Places:
    """Finds places, and reads each module once."""

    def __init__(self):
        self.modules = {}
        self.found = {}

    def find(self, site):
        """The Place of a site of the findings: {"file", "line"}, {"module", "place"}, or all."""
        frames = self.frames(site)
        return frames[0] if frames else None

    def frames(self, site, calls=()):
        """The student's places at a site and, behind it, of the calls that led there; the innermost
        first. `calls` are the sites of calls that were made, the innermost first."""
        found = own_frames([place for call in (site, *calls) for place in self.look_up(call)])
        if site and "file" in site:  # which the compiler knows better
            found = [Place(site["file"], site["line"]), *found[1:]]
        return found

    def look_up(self, site):
        """The places of a call, from the address that it returns to."""
        if not site or "module" not in site:
            return []
        key = path, returns_to = site["module"], site["place"]
        if key not in self.found:
            self.found[key] = self.read(path, returns_to - 1) if returns_to > 0 else []
        return self.found[key]

    def read(self, path, address):
        """The places of an instruction, read from its module."""
        if path not in self.modules:
            self.modules[path] = open_module(path)
        module = self.modules[path]
        if module:
            return module.frames(address)
        place = ask_atos(path, address)
        return [place] if place else []
