"""Images in separate processes (adapters/processes/calls.py): conversion of valid ones, refusal of others."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from PIL import Image, ImageCms

from adapters.processes.calls import ConverterLimits, ProcessImageConverter
from domain.media.ports import ConvertedImage, ImageRefused
from tests.support import images

pytestmark = pytest.mark.asyncio


def command(memory: int = 1024) -> list[str]:
    return [sys.executable, "-P", "-m", "entrypoints.imager", str(os.getpid()), str(memory)]


@pytest_asyncio.fixture
async def converter() -> AsyncIterator[ProcessImageConverter]:
    image_converter = ProcessImageConverter(command(), max_conversions=2)
    yield image_converter
    await image_converter.close()


async def convert(converter: ProcessImageConverter, folder: Path, content: bytes) -> tuple[ConvertedImage, Image.Image]:
    source = folder / "source"
    source.write_bytes(content)
    converted = await converter.convert(source, folder / "made.webp")
    for file in converted.files:
        image = Image.open(file.path)
        assert image.format == "WEBP" and image.size == (file.width, file.height)
        assert file.bytes == file.path.stat().st_size
        assert not {"exif", "icc_profile", "xmp"} & image.info.keys(), "nothing hidden is kept"
    return converted, Image.open(converted.file.path).convert("RGB")


def size_of(converted: ConvertedImage) -> tuple[int, int]:
    return converted.file.width, converted.file.height


def get_renditions(converted: ConvertedImage) -> list[tuple[int, int]]:
    return [(one.width, one.height) for one in converted.renditions]


def is_close(pixel: object, wanted: tuple[int, int, int], by: int = 24) -> bool:
    assert isinstance(pixel, tuple)
    return all(abs(a - b) <= by for a, b in zip(pixel, wanted, strict=True))


async def test_accepted_formats(converter: ProcessImageConverter, tmp_path: Path) -> None:
    for format, options in (("JPEG", {"quality": 95}), ("PNG", {}), ("GIF", {}), ("WEBP", {"lossless": True})):
        content = images.encode_image(images.build_image(), format, **options)
        converted, image = await convert(converter, tmp_path, content)
        assert size_of(converted) == (60, 40), format
        assert is_close(image.getpixel((5, 5)), (255, 255, 255)) and is_close(
            image.getpixel((55, 35)), (200, 30, 30)
        ), format
        assert (await convert(converter, tmp_path, content))[0].content == converted.content, "the same every time"


async def test_large_images_are_reduced(converter: ProcessImageConverter, tmp_path: Path) -> None:
    converted, _ = await convert(converter, tmp_path, images.encode_image(images.build_image(5000, 2500)))
    assert size_of(converted) == (2048, 1024)
    assert get_renditions(converted) == [(320, 160), (960, 480)]


@pytest.mark.parametrize(
    ("width", "height", "wanted"),
    [
        (60, 40, []),
        (320, 10, []),
        (200, 321, [(199, 320)]),
        (960, 960, [(320, 320)]),
        (800, 961, [(266, 320), (799, 960)]),
        (5000, 10, [(320, 1), (960, 2)]),
    ],
)
async def test_renditions_are_smaller_than_the_image(
    converter: ProcessImageConverter, tmp_path: Path, width: int, height: int, wanted: list[tuple[int, int]]
) -> None:
    content = images.encode_image(images.build_image(width, height), "PNG")
    converted, _ = await convert(converter, tmp_path, content)
    assert [max(size) for size in get_renditions(converted)] == [max(size) for size in wanted]
    assert [min(size) for size in get_renditions(converted)] == pytest.approx([min(size) for size in wanted], abs=1)
    again, _ = await convert(converter, tmp_path, content)
    assert again == converted, "the same every time"


async def test_renditions_show_the_same_picture(converter: ProcessImageConverter, tmp_path: Path) -> None:
    converted, _ = await convert(converter, tmp_path, images.encode_image(images.build_image(1200, 800)))
    for file in converted.renditions:
        image = Image.open(file.path).convert("RGB")
        assert is_close(image.getpixel((9, 9)), (255, 255, 255))
        assert is_close(image.getpixel((file.width - 9, file.height - 9)), (200, 30, 30))
    clear = images.encode_image(Image.new("RGBA", (1200, 800), (255, 0, 0, 0)), "PNG")
    converted, _ = await convert(converter, tmp_path, clear)
    assert all(Image.open(one.path).convert("RGBA").getpixel((5, 5))[3] == 0 for one in converted.renditions)  # type: ignore[index]


@pytest.mark.parametrize(("orientation", "white"), [(1, (5, 5)), (3, (55, 35)), (6, (35, 5)), (8, (5, 55))])
async def test_images_are_rotated_by_their_orientation(
    converter: ProcessImageConverter, tmp_path: Path, orientation: int, white: tuple[int, int]
) -> None:
    converted, image = await convert(converter, tmp_path, images.build_rotated_jpeg(orientation))
    assert size_of(converted) == ((60, 40) if orientation in (1, 3) else (40, 60))
    assert is_close(image.getpixel(white), (255, 255, 255))


@pytest.mark.parametrize("format", ["GIF", "WEBP"])
async def test_the_first_picture_of_an_animation(converter: ProcessImageConverter, tmp_path: Path, format: str) -> None:
    _, image = await convert(converter, tmp_path, images.build_animation(format))
    assert is_close(image.getpixel((15, 10)), (255, 0, 0)) and getattr(image, "n_frames", 1) == 1


async def test_colours(converter: ProcessImageConverter, tmp_path: Path) -> None:
    cmyk = images.encode_image(Image.new("CMYK", (30, 20), (0, 255, 255, 0)), "JPEG", quality=95)
    _, image = await convert(converter, tmp_path, cmyk)
    assert is_close(image.getpixel((9, 9)), (255, 0, 0))
    _, image = await convert(converter, tmp_path, images.encode_image(Image.new("I;16", (30, 20), 0x8000), "PNG"))
    assert is_close(image.getpixel((9, 9)), (128, 128, 128)), "sixteen bits are scaled, not cut off"
    for profile in (None, b"no profile at all", bytes(200)):
        _, image = await convert(converter, tmp_path, images.build_profiled_jpeg(profile))
        assert is_close(image.getpixel((55, 35)), (0, 0, 99))
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    _, image = await convert(converter, tmp_path, images.build_profiled_jpeg(lab))
    assert is_close(image.getpixel((55, 35)), (0, 0, 99)), "a profile of another kind is passed over"


async def test_transparency_is_preserved(converter: ProcessImageConverter, tmp_path: Path) -> None:
    clear = Image.new("RGBA", (30, 20), (255, 0, 0, 0))
    for content in (images.encode_image(clear, "PNG"), images.encode_image(clear.quantize(), "PNG")):
        converted, _ = await convert(converter, tmp_path, content)
        assert Image.open(converted.file.path).convert("RGBA").getpixel((5, 5))[3] == 0  # type: ignore[index]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (images.SVG, "not a readable image"),
        (images.HTML, "not a readable image"),
        (b"", "not a readable image"),
        (b"\xff\xd8\xff", "not a readable image"),
        (images.build_jpeg()[:-200], "damaged"),
        (images.encode_image(images.build_image(), "PNG")[:-60], "damaged"),
        (images.encode_image(images.build_image(), "TIFF"), "not a readable image"),
        (images.build_png(20_000, 10_000), "200000000|20000 × 10000"),
        (images.build_png(2**31 - 1, 2**31 - 1), "not a readable image|pixels"),
        (images.build_png(100, 100, b"short"), "damaged"),
        (images.build_text_bomb(), "damaged|memory|cannot"),
    ],
    ids=["svg", "html", "empty", "head", "jpeg", "png", "tiff", "200 megapixels", "huge", "short", "text bomb"],
)
async def test_invalid_images_are_refused(
    converter: ProcessImageConverter, tmp_path: Path, content: bytes, reason: str
) -> None:
    with pytest.raises(ImageRefused, match=reason):
        await convert(converter, tmp_path, content)
    assert (await convert(converter, tmp_path, images.build_jpeg()))[0].file.width == 60, (
        "the next one is none the worse"
    )


async def test_memory_and_time_are_bounded(tmp_path: Path) -> None:
    content = images.build_png_bomb()
    assert len(content) < 1 << 20
    small = ProcessImageConverter(command(memory=256), max_conversions=1)
    try:
        with pytest.raises(ImageRefused, match="memory|sudden end"):
            await convert(small, tmp_path, content)
    finally:
        await small.close()
    hurried = ProcessImageConverter(command(), max_conversions=1, limits=ConverterLimits(max_seconds=0.001))
    try:
        with pytest.raises(ImageRefused, match="too long"):
            await convert(hurried, tmp_path, content)
    finally:
        await hurried.close()


async def test_concurrent_conversions_survive_a_server_crash(converter: ProcessImageConverter, tmp_path: Path) -> None:
    async def one(number: int) -> int:
        folder = tmp_path / str(number)
        folder.mkdir()
        return (await convert(converter, folder, images.build_jpeg(number)))[0].file.width

    assert await asyncio.gather(*(one(number) for number in range(5))) == [60] * 5
    await converter.close()
    assert await one(9) == 60
