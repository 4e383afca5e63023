"""Makes `python -m grader` the command `grader`."""

import sys

from grader.cli import main

sys.exit(main())
