"""Conversion of untrusted images to WebP: bounded size, upright, sRGB, without metadata."""

import io
import struct
import zlib
from contextlib import suppress
from pathlib import Path

from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

from domain.media.ports import ImageRefused

EDGE = 2048
"""Longest side of a stored image in pixels."""
PIXELS = 64_000_000
"""Maximum pixels of an image that is decoded."""
SMALLER = (960, 320)
"""Longest sides of the renditions in pixels; only those smaller than the image are made."""
QUALITY = 82
FORMATS = ("JPEG", "PNG", "GIF", "WEBP")
_METHOD = 2
"""Effort of the encoder, 0 to 6: each step beyond 2 doubles the time and saves a few percent."""
_HIGH_DEPTH_MODES = frozenset(("I", "I;16", "I;16B", "I;16L", "F"))

Image.MAX_IMAGE_PIXELS = 2 * PIXELS
Image.preinit()
with suppress(ImportError):
    from PIL import WebPImagePlugin  # noqa: F401  loaded at import, so that forked processes have it


def webp_of(source: Path, target: Path) -> list[tuple[str, int, int]]:
    """Write the file's first frame as WebP to `target`, and its renditions to the same folder.

    Returns:
        File name, width and height in pixels of each written file, the largest first.

    Raises:
        ImageRefused: The file is not a readable image, or is too large.
        MemoryError: The memory limit is exceeded.

    """
    try:
        with Image.open(source, formats=FORMATS) as image:
            _refuse_large(image)
            image.draft(image.mode, (EDGE, EDGE))
            image.load()
            normalised = _normalise(image)
    except (UnidentifiedImageError, Image.DecompressionBombError):
        raise ImageRefused("The file is not a readable image.") from None
    except (OSError, SyntaxError, ValueError, IndexError, TypeError, struct.error, zlib.error, EOFError):
        raise ImageRefused("The image is damaged.") from None
    written = [_save(normalised, target)]
    for edge in SMALLER:
        if edge < max(normalised.size):
            normalised.thumbnail((edge, edge), Image.Resampling.LANCZOS, reducing_gap=3.0)
            written.append(_save(normalised, target.with_stem(f"{target.stem}-{edge}")))
    return written


def _save(image: Image.Image, target: Path) -> tuple[str, int, int]:
    image.save(target, "WEBP", quality=QUALITY, method=_METHOD, exif=b"", icc_profile=b"", xmp=b"")
    return target.name, *image.size


def _refuse_large(image: Image.Image) -> None:
    width, height = image.size
    if width * height > PIXELS:
        raise ImageRefused(
            f"The image has {width} × {height} pixels; at most {PIXELS // 1_000_000} million are accepted."
        )


def _normalise(image: Image.Image) -> Image.Image:
    """Rotate upright, scale to EDGE, then convert to sRGB; scaling first is cheaper."""
    profile = image.info.get("icc_profile")
    upright = ImageOps.exif_transpose(image)
    if upright.mode in _HIGH_DEPTH_MODES:
        upright = _to_8_bits(upright)
    if upright.mode in ("P", "PA", "1", "La", "RGBa", "LA"):
        has_alpha = "transparency" in upright.info or upright.mode in ("PA", "La", "RGBa", "LA")
        upright = upright.convert("RGBA" if has_alpha else "RGB")
    elif upright.mode in ("RGB", "L") and "transparency" in upright.info:
        upright = upright.convert("RGBA")
    upright.thumbnail((EDGE, EDGE), Image.Resampling.LANCZOS, reducing_gap=2.0)
    return _to_srgb(upright, profile)


def _to_8_bits(image: Image.Image) -> Image.Image:
    """Convert 16-bit greyscale to 8 bits by scaling, not clipping."""
    if image.mode == "F":
        return image.convert("L")
    return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")


def _to_srgb(image: Image.Image, profile: object) -> Image.Image:
    """Convert to sRGB by the embedded profile; an unusable profile is ignored."""
    mode = "RGBA" if image.mode == "RGBA" else "RGB"
    if isinstance(profile, bytes) and profile and image.mode in ("RGB", "RGBA", "CMYK", "L"):
        with suppress(ImageCms.PyCMSError, OSError, ValueError, TypeError):
            embedded = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            converted = ImageCms.profileToProfile(image, embedded, ImageCms.createProfile("sRGB"), outputMode=mode)
            if converted is not None:
                return converted
    return image if image.mode == mode else image.convert(mode)
