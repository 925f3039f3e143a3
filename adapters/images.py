"""Makes of a file that somebody else made a WebP of bounded size, upright, in sRGB and without anything hidden in it."""

import io
import struct
import zlib
from contextlib import suppress
from pathlib import Path

from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

from domain.media.ports import ImageRefused

EDGE = 2048
"""Pixels of the longest side of what is stored."""
PIXELS = 64_000_000
"""The most that is decoded."""
SMALLER = (960, 320)
"""Pixels of the longest sides of what is stored beside it, as long as that is larger."""
QUALITY = 82
FORMATS = ("JPEG", "PNG", "GIF", "WEBP")
_METHOD = 2
"""How hard the encoder tries, of 6: each step beyond costs twice the time and saves a few percent."""
_DEEP = frozenset(("I", "I;16", "I;16B", "I;16L", "F"))

Image.MAX_IMAGE_PIXELS = 2 * PIXELS
Image.preinit()
with suppress(ImportError):
    from PIL import WebPImagePlugin  # noqa: F401  loaded before any file is, so that forked processes have it


def webp_of(source: Path, target: Path) -> list[tuple[str, int, int]]:
    """Write the WebP of the file's first picture, and smaller ones beside it: file name, width and height in pixels of each.

    The target comes first, then the smaller ones, the smallest last. Raises ImageRefused, MemoryError.
    """
    try:
        with Image.open(source, formats=FORMATS) as image:
            _refuse_large(image)
            image.draft(image.mode, (EDGE, EDGE))
            image.load()
            made = _plain(image)
    except (UnidentifiedImageError, Image.DecompressionBombError):
        raise ImageRefused("It is no image that can be read.") from None
    except (OSError, SyntaxError, ValueError, IndexError, TypeError, struct.error, zlib.error, EOFError):
        raise ImageRefused("The image is damaged.") from None
    written = [_saved(made, target)]
    for edge in SMALLER:
        if edge < max(made.size):
            made.thumbnail((edge, edge), Image.Resampling.LANCZOS, reducing_gap=3.0)
            written.append(_saved(made, target.with_stem(f"{target.stem}-{edge}")))
    return written


def _saved(made: Image.Image, target: Path) -> tuple[str, int, int]:
    made.save(target, "WEBP", quality=QUALITY, method=_METHOD, exif=b"", icc_profile=b"", xmp=b"")
    return target.name, *made.size


def _refuse_large(image: Image.Image) -> None:
    width, height = image.size
    if width * height > PIXELS:
        raise ImageRefused(f"The image has {width} × {height} pixels; at most {PIXELS // 1_000_000} million are taken.")


def _plain(image: Image.Image) -> Image.Image:
    """Upright, in sRGB, no larger than EDGE; scaled before colours are worked out, which is the cheaper order."""
    profile = image.info.get("icc_profile")
    upright = ImageOps.exif_transpose(image)
    if upright.mode in _DEEP:
        upright = _of_eight_bits(upright)
    if upright.mode in ("P", "PA", "1", "La", "RGBa", "LA"):
        clear = "transparency" in upright.info or upright.mode in ("PA", "La", "RGBa", "LA")
        upright = upright.convert("RGBA" if clear else "RGB")
    elif upright.mode in ("RGB", "L") and "transparency" in upright.info:
        upright = upright.convert("RGBA")
    upright.thumbnail((EDGE, EDGE), Image.Resampling.LANCZOS, reducing_gap=2.0)
    return _srgb(upright, profile)


def _of_eight_bits(image: Image.Image) -> Image.Image:
    """Sixteen bits of grey as eight, scaled and not cut off."""
    if image.mode == "F":
        return image.convert("L")
    return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")


def _srgb(image: Image.Image, profile: object) -> Image.Image:
    """In sRGB by the image's own profile; one that cannot be used is passed over."""
    wanted = "RGBA" if image.mode == "RGBA" else "RGB"
    if isinstance(profile, bytes) and profile and image.mode in ("RGB", "RGBA", "CMYK", "L"):
        with suppress(ImageCms.PyCMSError, OSError, ValueError, TypeError):
            own = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            made = ImageCms.profileToProfile(image, own, ImageCms.createProfile("sRGB"), outputMode=wanted)
            if made is not None:
                return made
    return image if image.mode == wanted else image.convert(wanted)
