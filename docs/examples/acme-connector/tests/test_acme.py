"""Acme's connector keeps what every connector promises."""

from acme_connector import joinery_connectors
from joinery_sdk.testing import ConnectorContract, Example, FakeAnswer

ITEM = b'{"item": "A-1", "family": "A", "name": "Stool", "colour": "Oak", "list_price": 49.90, "on_hand": 3}'


class TestAcme(ConnectorContract):
    """The suite of the kit, over one answer of Acme's."""

    example = Example(
        spec=joinery_connectors()[0],
        config={"account": "demo"},
        credentials={"token": "not-a-real-token"},
        answers={"https://api.acme.example/v1/demo/items": FakeAnswer(b'{"items": [%b]}' % ITEM)},
        rows=1,
    )
