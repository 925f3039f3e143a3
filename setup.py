"""Puts the pages of docs/ into the package, so that an installed service serves them (docs/decisions/0037)."""

from pathlib import Path
from shutil import copyfile

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
PACKED = Path("entrypoints", "site", "pages")


class BuildWithPages(build_py):
    """The usual build, and the pages. An editable install reads them where they are."""

    def run(self) -> None:
        """Copy every page after the modules."""
        super().run()
        if self.editable_mode:
            return
        for page in [
            ROOT / "CHANGELOG.md",
            *sorted((ROOT / "docs").glob("*.md")),
            *sorted((ROOT / "docs/decisions").glob("*.md")),
        ]:
            target = Path(self.build_lib) / PACKED / page.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            copyfile(page, target)


setup(cmdclass={"build_py": BuildWithPages})
