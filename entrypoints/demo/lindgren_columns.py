"""The columns of Lindgren & Falk's item master, headed as such sheets are, and a row of it."""

from typing import Final, TypeAlias

ITEM: Final = "Item #"
HANDLE: Final = "Handle"
NAME: Final = "Product Name"
COPY: Final = "Romance Copy"
KIND: Final = "Single Item, Set or Part"
CATEGORY: Final = "Category"
SUBCATEGORY: Final = "Sub Category"
COLLECTION: Final = "Collection"
BRAND: Final = "Brand"
UPC: Final = "UPC / EAN"
COLOR: Final = "Color"
FINISH: Final = "Finish"
MATERIALS: Final = "Materials"
SIZE: Final = "Size"
CONFIGURATION: Final = "Configuration"
DIMENSIONS: Final = "Product Dimension (Inch)"
SEAT_HEIGHT: Final = "Seat  Height (IN)"
WEIGHT: Final = "Weight (LB)"
ASSEMBLY: Final = "K/D"
PARTS: Final = "Parts for Group Items"
CARTONS: Final = "No. of Cartons"
SHIP_LENGTH: Final = "Shipping Length (IN)"
SHIP_WIDTH: Final = "Shipping Width (IN)"
SHIP_HEIGHT: Final = "Shipping Height (IN)"
SHIP_WEIGHT: Final = "Shipping Weight (LB)"
CUBE: Final = "Cu.Ft."
RUG_SIZE: Final = "Rug Size"
CONSTRUCTION: Final = "Construction"
PILE: Final = "Pile Height (IN)"
FREIGHT: Final = "Freight Class"
COST: Final = "Wholesale*"
MAP: Final = "MAP"
MSRP: Final = "MSRP"
EAST: Final = "EAST"
WEST: Final = "WEST"
ETA_EAST: Final = "ETA EAST"
ETA_WEST: Final = "ETA WEST"
LEAD: Final = "Lead Time\n(Days)"
IMAGE_1: Final = "Image 1"
IMAGE_2: Final = "Image 2"
FEATURES: Final = "Features"
ORIGIN: Final = "Made In"
PROP_65: Final = "Prop 65"
STATUS: Final = "Item Status"
GROUP: Final = "Style Group"

COLUMNS: Final = (
    ITEM, HANDLE, NAME, COPY, KIND, CATEGORY, SUBCATEGORY, COLLECTION, BRAND, UPC, COLOR, FINISH, MATERIALS, SIZE,
    CONFIGURATION, DIMENSIONS, SEAT_HEIGHT, WEIGHT, ASSEMBLY, PARTS, CARTONS, SHIP_LENGTH, SHIP_WIDTH, SHIP_HEIGHT,
    SHIP_WEIGHT, CUBE, RUG_SIZE, CONSTRUCTION, PILE, FREIGHT, COST, MAP, MSRP, EAST, ETA_EAST, WEST, ETA_WEST, LEAD,
    IMAGE_1, IMAGE_2, FEATURES, ORIGIN, PROP_65, STATUS, GROUP,
)  # fmt: skip

Row: TypeAlias = dict[str, str]
"""A row's cells by column; what is missing is blank."""
