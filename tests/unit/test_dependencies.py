"""Every part of a process can be created from the parameters of its factory."""

from functools import partial
from pathlib import Path

import pytest

from entrypoints.areas.registry import AREAS
from entrypoints.container import create_dependencies
from entrypoints.dependencies import Dependencies
from entrypoints.operations.operation import create_handlers, create_services
from entrypoints.settings import Settings


def _create_dependencies(tmp_path: Path) -> Dependencies:
    return create_dependencies(
        Settings(
            database_url="postgresql:///nowhere",
            redis_url=None,
            objects_url=f"file://{tmp_path}",
            secret="a secret of at least thirty-two characters",
            base_url="https://api.joinery.test",
            docs_url="https://docs.joinery.test",
        )
    )


@pytest.mark.asyncio
async def test_every_factory_has_its_dependencies(tmp_path: Path) -> None:
    dependencies = _create_dependencies(tmp_path)
    for kind in dependencies._factories:
        assert dependencies[kind] is dependencies[kind]
    await dependencies.close()


@pytest.mark.asyncio
async def test_every_area_has_its_dependencies(tmp_path: Path) -> None:
    dependencies = _create_dependencies(tmp_path)
    assert set(create_services(AREAS, dependencies)) == {area.name for area in AREAS}
    assert create_handlers(AREAS, dependencies)
    assert [tick for area in AREAS for tick in dependencies.call(area.create_ticks)]
    await dependencies.close()


def test_a_missing_factory_is_an_error(tmp_path: Path) -> None:
    def needs_number(number: int) -> int:
        return number

    with pytest.raises(ValueError, match="no signature"):
        _create_dependencies(tmp_path).call(needs_number)


@pytest.mark.asyncio
async def test_given_parts_are_injected(tmp_path: Path) -> None:
    dependencies = _create_dependencies(tmp_path)

    class Holder:
        def __init__(self, number: int, missing: float = 1.5, known: str = "") -> None:
            self.number, self.missing, self.known = number, missing, known

    dependencies[int], dependencies[str] = 4, "text"
    assert dependencies.call(partial(Holder, known="kept")).known == "kept"
    holder = dependencies[Holder]
    assert (holder.number, holder.missing, holder.known) == (4, 1.5, "text") and dependencies[Holder] is holder
