"""Names that look like those of other brands."""

import pytest

from domain.brand.domains import is_deceptive
from domain.brand.names import compute_brand_key


@pytest.mark.parametrize(
    ("name", "imitated"),
    [("Vıtra", "Vitra"), ("Vitrɑ", "Vitra"), ("ɡubi", "Gubi"), ("Іkea", "Ikea"), ("Nοrdic", "Nordic"), ("ꓲKEA", "Ikea"), ("ΙΚΕΑ", "Ikea"),
     ("Kartelꞁ", "Kartell"), ("Ikeạ", "Ikea"), ("Hɑy", "Hay"), ("Ca\u017f\u017fina", "Cassina"), ("ꜱmeg", "Smeg"), ("Muuƫo", "Muuto")],
)  # fmt: skip
def test_names_that_look_like_another_are_deceptive_or_the_same_brand(name: str, imitated: str) -> None:
    assert is_deceptive(name) or compute_brand_key(name) == compute_brand_key(imitated)
