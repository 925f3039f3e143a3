"""Builds the pages of /docs into the package, so that an installed service serves them (docs/decisions/0102)."""

import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithPages(build_py):
    """The usual build, and the pages. An editable install has those that `make docs` builds."""

    def run(self) -> None:
        """Build the pages after the modules; this needs the packages of the service and of the extra `docs`."""
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib, "entrypoints", "site", "html").resolve()
            subprocess.run(
                [sys.executable, "-m", "entrypoints.site.build", str(target)], check=True, cwd=Path(__file__).parent
            )


setup(cmdclass={"build_py": BuildWithPages})
