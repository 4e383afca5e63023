"""`python -m grader.status`, as `make status` calls it."""

import sys

from grader.status.table import main

sys.exit(main())
