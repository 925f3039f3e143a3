"""Maximum sizes of products, events, pages and buffers; what exceeds them is omitted and reported.

Each limit is far above the data of real vendors, and low enough that the largest object does no harm. In 15,500 products of
30 real feeds, the maximum was 99 variants (shop platforms allow 2,048), 32 images (they allow 250), 29 features, 8 KiB
for an event, and 64 KiB for a document.
"""

KIB = 1 << 10
MIB = 1 << 20

# A product as a source states it

MAX_ROWS_PER_PRODUCT = 10_000
"""Maximum number of rows of a feed that are read for one product: four for each variant."""
BYTES_PER_COUNTED_ROW = 4 * KIB
"""Bytes for which an encoded row counts as one further row of its product."""
MAX_IMPORTED_VARIANTS = 2_500
"""Maximum number of variants of a product in one import of a feed or one pushed record."""
MAX_OFFERS = 500
"""Maximum number of offers of a variant from one source, one for each location."""
MAX_LIST_ENTRIES = 500
"""Maximum number of entries in a list: tags, features, images, materials, parts, boxes."""
MAX_AXES = 50
"""Maximum number of axes of a variant (properties such as colour and size). Shop platforms allow three."""
MAX_ENTRY_CHARS = 2_048
"""Maximum number of characters of a text or URL in a list."""
PRODUCT_LIST_BYTES = 128 * KIB
"""Maximum size of each list of a product as JSON, in bytes; enough for 250 images with long URLs and texts."""
VARIANT_LIST_BYTES = 32 * KIB
"""Maximum size of each list of a variant as JSON, in bytes."""

# A product as it is kept

MAX_STORED_VARIANTS = 2 * MAX_IMPORTED_VARIANTS
"""Maximum number of stored variants of a product: current ones, and as many former ones."""
PRODUCT_BYTES = 8 * MIB
"""Maximum size of a product with its variants and offers as JSON, in bytes; enough for 2,048 variants at eight locations each."""

# Events, and who reads them

EVENT_BYTES = 128 * KIB
"""Bytes of one event. A larger one lists the changed paths and omits its largest values."""
CHANGES_BYTES = 1 * MIB
"""Bytes of events after which a page of the change feed, or a batch from the log, ends.

The event that reaches this size is included.
"""
LIST_BYTES = 4 * MIB
"""Bytes of a page of any other list."""
SUBSCRIBER_BYTES = 8 * MIB
"""Bytes of events that wait in memory for one subscriber of a log; a subscriber with more unread events reads the log instead."""
READ_BYTES = 4 * MIB
"""Bytes that are read from a log at a time for all subscribers of a tenant."""
TENANT_BYTES = 16 * MIB
"""Bytes of events that wait in one process for all subscribers of a tenant; each event counts once."""
PROCESS_BYTES = 64 * MIB
"""Maximum size of the events that wait for subscribers in one process, in bytes."""
STREAM_BYTES = 128 * KIB
"""Bytes of events written to a stream at a time."""

# Webhooks

PAYLOAD_BYTES = 512 * KIB
"""Maximum size of the object in a fat payload, in bytes; a larger object is omitted."""
DOCUMENT_BYTES = 1 * MIB
"""Maximum size of a product's document, in bytes, up to which fat payloads contain objects from the document."""
QUEUE_BYTES = 4 * MIB
"""Bytes of events that one endpoint's queue holds; others are read from the log when they are sent."""
BYTES_PER_RESULT = 16 * KIB
"""Bytes of a request body for which the result of the attempt counts as one more unrecorded result.

From `MAX_UNRECORDED` unrecorded results on, no further attempts are started.
"""
MAX_COMBINED_EVENTS = 1_000
"""Maximum number of events that are combined into one delivery."""
