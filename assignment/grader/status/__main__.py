"""`python -m grader.status`, as `make status` calls it."""

import sys

from grader.status.main import main

sys.exit(main())
