"""Validation of tax IDs by their format and check digits."""

from typing import Final

from stdnum.au import abn
from stdnum.ca import bn
from stdnum.ch import vat as ch_vat
from stdnum.eu import vat as eu_vat
from stdnum.exceptions import ValidationError
from stdnum.gb import vat as gb_vat
from stdnum.no import mva
from stdnum.us import ein

from domain.billing.model import TaxId, TaxIdType
from domain.kernel.errors import InvalidRequest

_MODULES: Final = {
    TaxIdType.EU_VAT: eu_vat,
    TaxIdType.GB_VAT: gb_vat,
    TaxIdType.CH_VAT: ch_vat,
    TaxIdType.NO_VAT: mva,
    TaxIdType.US_EIN: ein,
    TaxIdType.AU_ABN: abn,
    TaxIdType.CA_BN: bn,
}


def normalise_tax_id(tax_id: TaxId) -> TaxId:
    """Return the tax ID without separators. Raises InvalidRequest if its format or its check digits are wrong."""
    try:
        return TaxId(tax_id.type, _MODULES[tax_id.type].validate(tax_id.value))
    except ValidationError as error:
        raise InvalidRequest.for_field(
            "tax_id.value", "invalid_value", f"This is not a valid number of the type {tax_id.type}: {error}"
        ) from None
