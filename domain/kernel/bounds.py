"""Maximum sizes of products, events, pages and followers; anything beyond is omitted and reported.

Each limit is well above real vendors' data, and low enough that the largest of its kind harms nobody. Measured over
15,500 products of 30 real feeds: at most 99 variants (shop platforms allow 2,048), 32 pictures (they allow 250), 29
features, 8 KiB an event, 64 KiB a document.
"""

KIB = 1 << 10
MIB = 1 << 20

# A product as a source states it

ROWS = 10_000
"""Rows of a feed that are read for one product: four for each of the most variants."""
SHEET_ROW_BYTES = 4 * KIB
"""A longer row counts as several."""
VARIANTS = 2_500
"""Variants that one import of a feed, or one record, may state for a product."""
OFFERS = 500
"""Offers of one variant: its locations."""
ITEMS = 500
"""Entries of a list: tags, features, pictures, materials, parts, boxes."""
AXES = 50
"""Axes of a variant, which events list individually; shop platforms allow three."""
ITEM_CHARS = 2_048
"""Characters of one text or URL in a list."""
PRODUCT_LIST_BYTES = 128 * KIB
"""Bytes of one of a product's lists, as JSON: 250 pictures with long addresses and texts."""
VARIANT_LIST_BYTES = 32 * KIB
"""Bytes of one of a variant's lists, as JSON."""

# A product as it is kept

VARIANTS_HELD = 2 * VARIANTS
"""Variants that a product keeps: current ones, and as many former ones."""
PRODUCT_BYTES = 8 * MIB
"""Bytes of a product's variants and offers together, as JSON: 2,048 variants at eight locations each."""

# Events, and who reads them

EVENT_BYTES = 128 * KIB
"""Bytes of one event. A larger one lists the changed paths and omits its largest values."""
CHANGES_BYTES = 1 * MIB
"""Bytes of a page of the change feed, and of one read of the log for a reader that is behind."""
LIST_BYTES = 4 * MIB
"""Bytes of a page of any other list."""
FOLLOWER_BYTES = 8 * MIB
"""Bytes of events held for one follower of the log; a slower one falls back to reading the log."""
READ_BYTES = 4 * MIB
"""Bytes that are read from the log at a time for all followers of a tenant."""
TENANT_BYTES = 16 * MIB
"""Bytes of events held for all followers of a tenant in one process, each event once."""
PROCESS_BYTES = 64 * MIB
"""Bytes of events held in one process."""
STREAM_BYTES = 128 * KIB
"""Bytes of events written to a stream at a time."""

# Webhooks

PAYLOAD_BYTES = 512 * KIB
"""Bytes of the object that a fat payload carries; a larger one is omitted."""
DOCUMENT_BYTES = 1 * MIB
"""Bytes of the document from which such an object is taken."""
QUEUE_BYTES = 4 * MIB
"""Bytes of events that one endpoint's queue holds; others are read from the log when they are sent."""
OUTCOME_BYTES = 16 * KIB
"""Bytes of a sent body that count as one outcome waiting to be stored."""
COMBINED = 1_000
"""Events that are combined into one delivery."""
