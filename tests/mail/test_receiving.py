"""Mail over a real socket, from the dialogue to products, and what is refused on the way."""

import asyncio

import pytest

from tests.mail.office import Office
from tests.mail.post import CSV, message

pytestmark = pytest.mark.asyncio


async def test_from_a_message_to_products(post: Office) -> None:
    source, address = await post.source()
    reply = await post.send(address, message(("Inventory.csv", CSV)))
    assert reply.startswith("250 2.0.0"), reply
    [told] = await post.messages(source)
    assert (told["object"], told["from"], told["subject"], told["status"]) == (
        "inbound_message", "feeds@vendor.example", "Daily inventory", "accepted",
    )  # fmt: skip
    assert told["authentication"] == {"spf": "none", "dkim": "none", "dmarc": "none"}
    [file] = told["attachments"]
    assert (file["filename"], file["bytes"]) == ("Inventory.csv", len(CSV))
    await post.bench.worked(source)
    [run] = await post.runs(source)
    assert (run["id"], run["trigger"], run["status"]) == (file["run"], "mail", "succeeded")
    assert [data["title"] for data in await post.bench.data()] == ["Oak chair", "Oak table"]
