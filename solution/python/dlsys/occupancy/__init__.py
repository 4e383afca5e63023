"""How full a multiprocessor is with a kernel's warps, what limits that, what a change would give.

    python -m dlsys.occupancy --threads 256 --registers 40 --shared 16384
    python -m dlsys.occupancy build/lib/libc_runtime_api.so --threads 256     what is compiled there

Start at limits.py, which has the rules. compiled.py reads what compiled kernels take, picture.py
draws.
"""

from .limits import CAPABILITIES as CAPABILITIES
from .limits import Launch as Launch
from .limits import changes as changes
from .limits import occupancy as occupancy
