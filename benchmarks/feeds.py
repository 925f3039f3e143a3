"""Vendor files for measuring: an item master of any size and the stock sheet that belongs to it."""

import csv
import random
from collections.abc import Iterator
from pathlib import Path

HEADERS = (
    "Handle", "Title", "Brand", "Collection", "Category", "Subcategory", "Description", "SKU", "UPC", "MPN", "Color",
    "Material", "Product Dimension (Inch)", "Weight (LB)", "Shipping Length (IN)", "Shipping Width (IN)",
    "Shipping Height (IN)", "MSRP", "MAP", "Price", "Cost", "Qty", "Image 1", "Image 2", "Origin", "Freight Class",
)  # fmt: skip
BRANDS = tuple(f"{first} {second}" for first in ("Alder", "Birch", "Cedar", "Dune", "Elm", "Fjord", "Grove", "Heath")
               for second in ("& Co", "Home", "Works", "Living", "Atelier"))  # fmt: skip
KINDS = (
    ("Sofa", "Living Room", "Sofas"), ("Loveseat", "Living Room", "Loveseats"), ("Armchair", "Living Room", "Chairs"),
    ("Coffee Table", "Living Room", "Tables"), ("Dining Table", "Dining", "Tables"), ("Side Chair", "Dining", "Chairs"),
    ("Queen Bed", "Bedroom", "Beds"), ("Dresser", "Bedroom", "Dressers"), ("Nightstand", "Bedroom", "Nightstands"),
    ("Bookcase", "Office", "Shelving"), ("Writing Desk", "Office", "Desks"), ("Bench", "Entry", "Benches"),
)  # fmt: skip
WOODS = ("Walnut", "Oak", "Ash", "Maple", "Teak", "Cherry", "Acacia", "Pine")
COLOURS = ("Gray", "Ivory", "Charcoal", "Navy", "Sage", "Rust", "Black", "Natural", "Espresso", "White")
NAMES = tuple(a + b for a in ("Hal", "Mar", "Sol", "Ten", "Vik", "Or", "El", "Bren", "Cal", "Dor", "Fen", "Gil") for b in
              ("den", "low", "na", "sa", "wick", "to", "mere", "by", "stead", "ra", "vin", "lia"))  # fmt: skip


def _gtin(number: int) -> str:
    body = f"{400_000_000_000 + number:012d}"
    total = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(body))
    return f"{body}{-total % 10}"


def rows(products: int, variants: int, seed: int = 7, changed: frozenset[int] = frozenset()) -> Iterator[list[str]]:
    """`variants` rows for each of `products`; those in `changed` have another price and description."""
    choose = random.Random(seed)
    for product in range(products):
        kind, room, below = choose.choice(KINDS)
        name, wood, brand = choose.choice(NAMES), choose.choice(WOODS), choose.choice(BRANDS)
        width, depth, height = (choose.randrange(16, 96) for _ in range(3))
        eighth = choose.choice(("", " 1/4", " 1/2", " 3/4", " 5/8"))
        cost = choose.randrange(60, 2400)
        moved = product in changed
        for variant in range(variants):
            number = product * variants + variant
            colour = COLOURS[(product + variant) % len(COLOURS)]
            price = cost * 2 + variant * 10 + (5 if moved else 0)
            sku = f"{name[:3].upper()}{product:06d}-{variant:02d}"
            yield [
                f"{name.lower()}-{kind.lower().replace(' ', '-')}-{product}", f"{name} {wood} {kind}", brand, name, room,
                below, f"{name} is a {kind.lower()} in solid {wood.lower()}{', new this season' if moved else ''}.", sku,
                _gtin(number), f"M{product:06d}{variant}", colour, f"Solid {wood}, {wood} Veneer",
                f'{width}{eighth}"W X {depth}"D X {height}"H', f"{20 + width * height / 40:.1f}", f"{width + 3}",
                f"{depth + 3}", f"{height + 4}", f"{cost * 3}", f"{cost * 2}", f"{price}.00", f"{cost}", f"{number % 60}",
                f"https://img.vendor.example/{sku}-1.jpg", f"https://img.vendor.example/{sku}-2.jpg",
                ("VN", "MY", "CN", "US", "ID")[product % 5], ("70", "85", "125", "250")[product % 4],
            ]  # fmt: skip


def write_catalogue(
    path: Path, products: int, variants: int = 5, *, changed: frozenset[int] = frozenset(), crlf: bool = False
) -> int:
    """The item master; answers how many rows it has."""
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\r\n" if crlf else "\n")
        writer.writerow(HEADERS)
        for row in rows(products, variants, changed=changed):
            writer.writerow(row)
            count += 1
    return count


def write_stock(path: Path, products: int, variants: int = 5, shift: int = 7) -> int:
    """The stock sheet: every item's quantity, moved by `shift`."""
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("SKU", "Available Quantity"))
        for row in rows(products, variants):
            writer.writerow((row[7], (int(row[21]) + shift) % 60 + 60))
            count += 1
    return count
