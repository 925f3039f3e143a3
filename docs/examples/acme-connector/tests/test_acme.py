"""Tests of the connector for Acme's price list."""

from acme_connector import joinery_connectors
from joinery_sdk.testing import ConnectorContract, ConnectorExample, StubResponse

ITEM = b'{"item": "A-1", "family": "A", "name": "Stool", "colour": "Oak", "list_price": 49.90, "on_hand": 3}'


class TestAcme(ConnectorContract):
    """Contract tests of the SDK, run on one response of Acme."""

    example = ConnectorExample(
        spec=joinery_connectors()[0],
        config={"account": "demo"},
        credentials={"token": "not-a-real-token"},
        responses={"https://api.acme.example/v1/demo/items": StubResponse(b'{"items": [%b]}' % ITEM)},
        rows=1,
    )
