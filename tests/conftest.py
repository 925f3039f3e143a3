"""Generated tests are repeatable: the same examples each time, without limits of time. `make fuzz` (FUZZ_SECONDS) draws new ones."""

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None)
settings.load_profile("random" if os.environ.get("FUZZ_SECONDS") else "repeatable")
