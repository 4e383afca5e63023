"""Makes `python -m grader` the command `grader`."""

import sys

from grader.cli.main import main

sys.exit(main())
