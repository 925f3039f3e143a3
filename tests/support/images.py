"""Valid and hostile image files, created byte by byte or by Pillow."""

import io
import struct
import zlib
from typing import Any

from PIL import Image, ImageCms

SVG = (
    b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><rect width="9" height="9"/></svg>'
)
HTML = b"<!DOCTYPE html><html><body>Not found, but politely.</body></html>"


def build_image(width: int = 60, height: int = 40, colour: Any = (200, 30, 30), mode: str = "RGB") -> Image.Image:
    """Return an image whose upper left quarter is white, which shows its orientation."""
    image = Image.new(mode, (width, height), colour)
    if mode == "RGB":
        image.paste((255, 255, 255), (0, 0, width // 2, height // 2))
    return image


def encode_image(image: Image.Image, format: str = "JPEG", **options: Any) -> bytes:
    """Encode the image as a file."""
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def build_jpeg(number: int = 0, **options: Any) -> bytes:
    """Return a JPEG; each number is a different image."""
    return encode_image(build_image(colour=(number % 256, number // 256 % 256, 99)), "JPEG", quality=90, **options)


def build_rotated_jpeg(orientation: int) -> bytes:
    """Return a JPEG with an EXIF orientation."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010F] = "A camera's maker"
    return build_jpeg(exif=exif)


def build_animation(format: str) -> bytes:
    """Return an animation of three frames, the first red."""
    frames = [Image.new("RGB", (30, 20), colour) for colour in ("#f00", "#0f0", "#00f")]
    return encode_image(frames[0], format, save_all=True, append_images=frames[1:], duration=50)


def build_profiled_jpeg(profile: bytes | None = None) -> bytes:
    """Return a JPEG with a colour profile."""
    own = profile or ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    return build_jpeg(icc_profile=own)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def build_png(width: int, height: int, data: bytes = b"", depth: int = 8, kind: int = 2) -> bytes:
    """Return a PNG with the stated size, regardless of its data."""
    head = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(data)) + _chunk(b"IEND", b"")


def build_png_bomb() -> bytes:
    """Return a PNG of a few kilobytes that decodes to a large image within the limits."""
    return build_png(7_990, 8_000, bytes((7_990 * 3 + 1) * 8_000))


def build_text_bomb() -> bytes:
    """Return a small PNG whose text decompresses to 200 MiB."""
    good = build_png(4, 4, bytes(13 * 4))
    text = _chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(200 << 20)))
    return good[:33] + text + good[33:]
