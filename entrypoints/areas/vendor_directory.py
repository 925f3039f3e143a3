"""Directory of all vendors: GET /v1/vendor-profiles and GET /v1/vendor-profiles/{id}."""

from typing import Final

from adapters.api_json import brand as wire
from domain.brand.model import DirectoryFilter, ProfileStatus
from domain.brand.usecases.profiles import ProfileService
from domain.kernel.schema import Schema, boolean, enum, text
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import Area

_FILTERS: Final[dict[str, Schema]] = {
    "q": text(
        "fjord",
        min_length=2,
        max_length=100,
        description="Only profiles whose name or brands contain every word; each word may have a wrong letter.",
    ),
    "domain": text("fjord.example", max_length=253)
    | {
        "pattern": r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
        "x-words": "a host name in lower case, such as fjord.example",
        "description": "Only profiles whose website is at this domain or a subdomain. A public suffix such as `co.uk` matches none.",
    },
    "status": enum(*ProfileStatus) | {"description": "Only profiles with this status."},
    "verified": boolean(True, "Only profiles that are verified, or that are not."),
}


PROFILES = Collection("vendor_directory", wire.PROFILE, "products")

AREA = Area(
    "vendor_directory",
    "Vendor directory",
    "Profiles of all vendors, which every organisation can read.",
    create_service=ProfileService,
    operations=(
        PROFILES.list(
            "List vendor profiles",
            "Returns the profiles of all vendors that match the filters, newest first.",
            ProfileService.search,
            create_filter=DirectoryFilter,
            query=_FILTERS,
            no_dataset_reason="The directory is the same for all organisations; claims and events of an organisation are exported.",
        ),
        PROFILES.read("Read a vendor profile", "Returns the profile of one vendor."),
    ),
)
