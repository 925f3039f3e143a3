"""Generated vendor files for benchmarks: a catalogue of any size and the matching stock file."""

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


def _build_gtin(number: int) -> str:
    digits = f"{400_000_000_000 + number:012d}"
    checksum = sum(int(digit) * (3 if position % 2 else 1) for position, digit in enumerate(digits))
    return f"{digits}{-checksum % 10}"


def generate_rows(
    products: int, variants: int, seed: int = 7, changed: frozenset[int] = frozenset()
) -> Iterator[list[str]]:
    """Generate `variants` rows for each product; the products in `changed` have another price and description."""
    random_source = random.Random(seed)
    for product in range(products):
        kind, room, subcategory = random_source.choice(KINDS)
        name, wood, brand = random_source.choice(NAMES), random_source.choice(WOODS), random_source.choice(BRANDS)
        width, depth, height = (random_source.randrange(16, 96) for _ in range(3))
        eighth = random_source.choice(("", " 1/4", " 1/2", " 3/4", " 5/8"))
        cost = random_source.randrange(60, 2400)
        is_changed = product in changed
        for variant in range(variants):
            number = product * variants + variant
            colour = COLOURS[(product + variant) % len(COLOURS)]
            price = cost * 2 + variant * 10 + (5 if is_changed else 0)
            sku = f"{name[:3].upper()}{product:06d}-{variant:02d}"
            yield [
                f"{name.lower()}-{kind.lower().replace(' ', '-')}-{product}", f"{name} {wood} {kind}", brand, name, room,
                subcategory, f"{name} is a {kind.lower()} in solid {wood.lower()}{', new this season' if is_changed else ''}.", sku,
                _build_gtin(number), f"M{product:06d}{variant}", colour, f"Solid {wood}, {wood} Veneer",
                f'{width}{eighth}"W X {depth}"D X {height}"H', f"{20 + width * height / 40:.1f}", f"{width + 3}",
                f"{depth + 3}", f"{height + 4}", f"{cost * 3}", f"{cost * 2}", f"{price}.00", f"{cost}", f"{number % 60}",
                f"https://img.vendor.example/{sku}-1.jpg", f"https://img.vendor.example/{sku}-2.jpg",
                ("VN", "MY", "CN", "US", "ID")[product % 5], ("70", "85", "125", "250")[product % 4],
            ]  # fmt: skip


def write_catalogue(
    path: Path, products: int, variants: int = 5, *, changed: frozenset[int] = frozenset(), crlf: bool = False
) -> int:
    """Write a catalogue file and return its number of rows."""
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\r\n" if crlf else "\n")
        writer.writerow(HEADERS)
        for row in generate_rows(products, variants, changed=changed):
            writer.writerow(row)
            count += 1
    return count


def write_stock(path: Path, products: int, variants: int = 5, shift: int = 7) -> int:
    """Write a stock file and return its number of rows; another `shift` changes every quantity."""
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("SKU", "Available Quantity"))
        for row in generate_rows(products, variants):
            writer.writerow((row[7], (int(row[21]) + shift) % 60 + 60))
            count += 1
    return count
