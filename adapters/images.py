"""Conversion of untrusted images to WebP: limited in size, rotated upright, in sRGB, without metadata."""

import io
import struct
import zlib
from contextlib import suppress
from pathlib import Path

from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

from domain.media.ports import ImageRefused

MAX_EDGE_PIXELS = 2048
"""Maximum length in pixels of the longer side of a stored image; a larger image is scaled down."""
MAX_PIXELS = 64_000_000
"""Maximum pixels of a decoded image."""
RENDITION_EDGES = (960, 320)
"""Longest sides of the renditions in pixels. A rendition is made only if it is smaller than the image."""
WEBP_QUALITY = 82
"""Quality of the WebP encoder, 0 to 100."""
FORMATS = ("JPEG", "PNG", "GIF", "WEBP")
"""Accepted formats of images."""
_ENCODER_EFFORT = 2
"""Effort of the WebP encoder, 0 to 6: each step beyond 2 doubles the time and saves a few percent of size."""
_HIGH_DEPTH_MODES = frozenset(("I", "I;16", "I;16B", "I;16L", "F"))

Image.MAX_IMAGE_PIXELS = 2 * MAX_PIXELS
Image.preinit()
with suppress(ImportError):
    from PIL import WebPImagePlugin  # noqa: F401  loaded at import, so that forked processes have it


def convert_to_webp(source: Path, target: Path) -> list[tuple[str, int, int]]:
    """Convert the first frame of the image file `source` to WebP at `target`, with renditions in the same folder.

    Returns:
        File name without folder, width and height in pixels of each written file: the image, then its renditions.

    Raises:
        ImageRefused: The file is not a readable image, or is too large.
        MemoryError: The memory limit is exceeded.

    """
    try:
        with Image.open(source, formats=FORMATS) as image:
            _check_size(image)
            image.draft(image.mode, (MAX_EDGE_PIXELS, MAX_EDGE_PIXELS))
            image.load()
            normalised = _normalise(image)
    except (UnidentifiedImageError, Image.DecompressionBombError):
        raise ImageRefused("The file is not a readable image.") from None
    except (OSError, SyntaxError, ValueError, IndexError, TypeError, struct.error, zlib.error, EOFError):
        raise ImageRefused("The image is damaged.") from None
    written = [_save_as_webp(normalised, target)]
    for edge in RENDITION_EDGES:
        if edge < max(normalised.size):
            normalised.thumbnail((edge, edge), Image.Resampling.LANCZOS, reducing_gap=3.0)
            written.append(_save_as_webp(normalised, target.with_stem(f"{target.stem}-{edge}")))
    return written


def _save_as_webp(image: Image.Image, target: Path) -> tuple[str, int, int]:
    """Write the image as WebP; return the file name without folder, and width and height in pixels."""
    image.save(target, "WEBP", quality=WEBP_QUALITY, method=_ENCODER_EFFORT, exif=b"", icc_profile=b"", xmp=b"")
    return target.name, *image.size


def _check_size(image: Image.Image) -> None:
    """Raise ImageRefused if the image has more than MAX_PIXELS."""
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise ImageRefused(
            f"The image has {width} × {height} pixels; at most {MAX_PIXELS // 1_000_000} million are accepted."
        )


def _normalise(image: Image.Image) -> Image.Image:
    """Rotate the image upright, scale it to at most MAX_EDGE_PIXELS, and convert it to sRGB."""
    profile = image.info.get("icc_profile")
    upright = ImageOps.exif_transpose(image)
    if upright.mode in _HIGH_DEPTH_MODES:
        upright = _convert_to_8_bits(upright)
    if upright.mode in ("P", "PA", "1", "La", "RGBa", "LA"):
        has_alpha = "transparency" in upright.info or upright.mode in ("PA", "La", "RGBa", "LA")
        upright = upright.convert("RGBA" if has_alpha else "RGB")
    elif upright.mode in ("RGB", "L") and "transparency" in upright.info:
        upright = upright.convert("RGBA")
    upright.thumbnail((MAX_EDGE_PIXELS, MAX_EDGE_PIXELS), Image.Resampling.LANCZOS, reducing_gap=2.0)
    return _to_srgb(upright, profile)


def _convert_to_8_bits(image: Image.Image) -> Image.Image:
    """Convert a greyscale image to 8 bits per pixel; 16-bit integers are scaled, floating-point numbers are not."""
    if image.mode == "F":
        return image.convert("L")
    return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")


def _to_srgb(image: Image.Image, profile: object) -> Image.Image:
    """Convert the image to sRGB by its embedded colour profile; an unusable profile is ignored."""
    mode = "RGBA" if image.mode == "RGBA" else "RGB"
    if isinstance(profile, bytes) and profile and image.mode in ("RGB", "RGBA", "CMYK", "L"):
        with suppress(ImageCms.PyCMSError, OSError, ValueError, TypeError):
            embedded = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            converted = ImageCms.profileToProfile(image, embedded, ImageCms.createProfile("sRGB"), outputMode=mode)
            if converted is not None:
                return converted
    return image if image.mode == mode else image.convert(mode)
