"""Tasks for the assistant, with the steps of a scripted model, the decisions of a scripted person, and what must be true afterwards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.http.assistant import Call
from tests.quality.catalogue import DINING_TABLES, OUTDOOR_CHAIRS


@dataclass(frozen=True)
class Task:
    """Task of a person. `<name>` in arguments, facts and paths stands for an ID of the prepared organisation.

    Attributes:
        name: Name in the report.
        prompt: What the person writes.
        steps: Calls of the scripted model, which finds their tools with the words of the prompt.
        facts: Texts that the answer must contain; alternatives are separated by `|`. The scripted model takes them from results.
        conclusion: Text that the scripted model adds, for facts that follow from several results.
        approved: Operations that the person approves; others are rejected.
        state: Properties of resources afterwards, by path; the path of a list concerns its first item.
    """

    name: str
    prompt: str
    steps: Sequence[Call] = ()
    facts: Sequence[str] = ()
    conclusion: str = ""
    approved: Sequence[str] = ()
    state: Mapping[str, Mapping[str, Any]] | None = None


def _change(name: str, prompt: str, operation: str, state: Mapping[str, Mapping[str, Any]], **arguments: Any) -> Task:
    """Return a task with one change that the person approves."""
    call = Call(operation.replace(".", "_"), arguments)
    return Task(name, prompt, [call], approved=[operation], state=state)


_SOURCES = Call("sources_list", {"limit": 20})
_ENDPOINTS = Call("webhooks_list")
TASKS = (
    Task("find a product", "Which oak dining tables do we have?", [Call("catalogue_list_products", {"q": "oak dining table"})], ["Halden oak dining table"]),
    Task("find by article number", "Which product has the article number HAL-180?", [Call("catalogue_list_products", {"sku": ["HAL-180"]})], ["Halden"]),
    Task("find by GTIN", "Find the product with the EAN 4006381333931.", [Call("catalogue_list_products", {"gtin": ["4006381333931"]})], ["Halden"]),
    Task("find by brand", "List the lamps of the brand Nordlys.", [Call("catalogue_list_products", {"brand": "Nordlys"})], ["Vik", "Ask", "Sol"]),
    Task("find by category", "Which products are in the category of dining tables?",
         [Call("catalogue_list_categories"), Call("catalogue_list_products", {"category": [DINING_TABLES]})], ["Halden"]),
    Task("sold out", "Which products are out of stock?", [Call("catalogue_list_products", {"availability": ["out_of_stock"]})], ["Sol table lamp"]),
    Task("describe a product", "What is the Halden table made of, and how wide is it?", [Call("catalogue_read_product", {"id": "<HAL-180>"})], ["oak", "180"]),
    Task("compare prices", "Which source sells the Halden table cheaper, and at what price?",
         [Call("catalogue_list_offers", {"product": "<HAL-180>"}), Call("catalogue_list_offers", {"product": "<F-HAL>"})], ["47900|479"]),
    Task("compare lead times", "Who delivers the Halden table faster, and in how many days?",
         [Call("catalogue_read_product", {"id": "<HAL-180>"}), Call("catalogue_read_product", {"id": "<F-HAL>"})], ["14"]),
    Task("order list", "Prepare an order list of the lamps that are low in stock, with the quantities that are left.",
         [Call("catalogue_list_products", {"availability": ["low_stock"], "brand": "Nordlys"}), Call("catalogue_list_offers", {"availability": "low_stock"})],
         ["Vik table lamp", "Ask table lamp"]),
    Task("incoming goods", "When do more Vik lamps arrive?", [Call("catalogue_read_product", {"id": "<VIK-L>"})], ["2026-12-24|24 December 2026|December 24, 2026"]),
    Task("explain a price change", "Why does the Halden table cost 499 euros now? What was the price before the recent change?",
         [Call("changes_recent", {"types": ["offer.changed"]})], ["52900|529"]),
    Task("recent changes", "Which products and offers changed recently?", [Call("changes_recent", {"limit": 10})], ["Kalmar", "<VIK-L_offer>|Vik"]),
    Task("stock changes", "How did the stock of the Vik lamp change recently?", [Call("changes_recent", {"types": ["offer.changed"]})], ["9"]),
    Task("changed since a day", "Which products were updated since yesterday?",
         [Call("catalogue_list_products", {"updated_since": "2026-11-19T00:00:00Z", "q": "kalmar"})], ["Kalmar sofa"]),
    Task("stale sources", "Which sources have stale data?", [_SOURCES], ["Nordlys price list"]),
    Task("failing sources", "Which source is failing, and why?", [_SOURCES], ["Fermob shop", "403"]),
    Task("paused sources", "Which sources are paused?", [_SOURCES], ["Garden outlet"]),
    Task("settings of a source", "From which address is the Lindgren feed fetched?", [Call("sources_read", {"id": "<lindgren>"})], ["vendor.example/feed.csv"]),
    Task("explain a failed run", "Why did the last run of the Fermob shop fail?",
         [Call("runs_list", {"id": "<fermob>"}), Call("runs_read", {"id": "<failed_run>"})], ["403"]),
    Task("removal limit", "Why was the import of the outdoor supplier refused?",
         [Call("runs_list", {"id": "<outlet>"}), Call("runs_read", {"id": "<shrunk_run>"})], ["412"]),
    Task("summarise problems", "Summarise the problems of the last run of the Lindgren feed.",
         [Call("runs_list", {"id": "<lindgren>"}), Call("runs_read", {"id": "<run>"})], ["auf Anfrage", "4006381"]),
    Task("unmapped columns", "Which columns of the Lindgren feed were not read in the last run?",
         [Call("runs_list", {"id": "<lindgren>"}), Call("runs_read", {"id": "<run>"})], ["Zorb"]),
    Task("numbers of a run", "How many rows did the last run of the Lindgren feed read?",
         [Call("runs_list", {"id": "<lindgren>"}), Call("runs_read", {"id": "<run>"})], ["1204|1,204"]),
    _change("pause a source", "Pause the Lindgren feed.", "sources.update", {"/v1/sources/<lindgren>": {"status": "paused"}},
            id="<lindgren>", body={"status": "paused"}, if_match="*"),
    _change("resume a source", "Activate the paused source Garden outlet again.", "sources.update", {"/v1/sources/<garden>": {"status": "active"}},
            id="<garden>", body={"status": "active"}, if_match="*"),
    _change("rename a source", "Change the name of the source Own warehouse to Warehouse Kiel.", "sources.update",
            {"/v1/sources/<stock>": {"name": "Warehouse Kiel"}}, id="<stock>", body={"name": "Warehouse Kiel"}, if_match="*"),
    _change("create a source", "Create a source named Till for records that our system pushes, with euros as currency. The data is our own.",
            "sources.create", {"/v1/sources": {"name": "Till", "kind": "push"}},
            body={"name": "Till", "kind": "push", "config": {"currency": "eur"}, "licence_basis": "own_data"}),
    _change("schedule a source", "Pull the Nordlys price list every day from now on: change its schedule.", "sources.update",
            {"/v1/sources/<nordlys>": {"schedule": {"interval_minutes": 1440, "adaptive": False}}},
            id="<nordlys>", body={"schedule": {"interval_minutes": 1440}}, if_match="*"),
    _change("start a run", "Fetch the Nordlys price list now.", "runs.start", {"/v1/sources/<nordlys>/runs": {"status": "queued"}}, id="<nordlys>"),
    _change("replace an address", "The inbound mail address of the price lists has leaked. Rotate it.", "sources.rotate_address", {"/v1/sources/<lists>": {}}, id="<lists>"),
    Task("rejected change", "Rotate the inbound mail address of the price lists.", [Call("sources_rotate_address", {"id": "<lists>"})],
         conclusion="You rejected the change.", state={"/v1/sources/<lists>": {"kind": "file"}}),
    Task("show a mapping", "Which column mapping does the outdoor supplier have, and what does the sample row contain?",
         [Call("mappings_list", {"id": "<outlet>"}), Call("mappings_read", {"id": "<mapping>"})], ["Farbe", "anthrazit"]),
    Task("map a feed", "Confirm the column mapping of the outdoor supplier.", [Call("mappings_list", {"id": "<outlet>"}), Call("mappings_confirm", {"id": "<mapping>"})],
         approved=["mappings.confirm"], state={"/v1/mappings/<mapping>": {"status": "confirmed"}}),
    Task("category paths", "Which category paths of the outdoor supplier have no rule?", [Call("runs_list_categories", {"id": "<outlet>"})], ["Chairs"]),
    Task("file 500 products", "File all 500 products of the outdoor supplier under outdoor chairs, with one category rule for the path Outdoor.",
         [Call("catalogue_list_categories"), Call("runs_list_categories", {"id": "<outlet>"}),
          Call("runs_set_categories", {"id": "<outlet>", "body": {"rules": [{"path": ["Outdoor"], "category": OUTDOOR_CHAIRS}]}})],
         approved=["runs.set_categories"], state={"/v1/sources/<outlet>/categories": {"path": ["Outdoor"], "products": 500, "rule": {"id": OUTDOOR_CHAIRS}}}),
    Task("refused mail", "Why was an email to the price lists refused?", [Call("mail_list_messages", {"id": "<lists>"})], ["DMARC"]),
    Task("received files", "Which files were in the messages that the price lists received by mail?", [Call("mail_list_messages", {"id": "<lists>"})], ["prices-2027.xlsx"]),
    Task("website check", "What did the check of the website fermob.example find?", [Call("probes_list")], ["shopify|Shopify"]),
    _change("check a website", "Check the website https://nordlys.example/ before we connect it.", "probes.create", {"/v1/source-probes": {"url": "https://nordlys.example/"}},
            body={"url": "https://nordlys.example/"}),
    Task("open matches", "Which matches are open, and how likely are they?", [Call("matching_list_pairs", {"status": "open"})], ["0.97|97"]),
    Task("evidence of a match", "What speaks for the match of the two Halden tables?",
         [Call("matching_list_pairs", {"status": "open"}), Call("matching_read_pair", {"id": "<pair>"})], ["0.97|97"]),
    Task("merge a match", "The two Halden tables are the same article. Merge the match.", [Call("matching_list_pairs", {"status": "open"}), Call("matching_merge_pair", {"id": "<pair>"})],
         approved=["matching.merge_pair"], state={"/v1/match-pairs/<pair>": {"status": "merged"}}),
    Task("dismiss a match", "Vik and Ask are different lamps. Dismiss the match.", [Call("matching_list_pairs", {"status": "open"}), Call("matching_dismiss_pair", {"id": "<wrong_pair>"})],
         approved=["matching.dismiss_pair"], state={"/v1/match-pairs/<wrong_pair>": {"status": "dismissed"}}),
    Task("undo a merge", "Undo the merge of the red rugs.", [Call("matching_list_merges"), Call("matching_undo_merge", {"id": "<merge>"})],
         approved=["matching.undo_merge"], state={"/v1/merges/<merge>": {"status": "undone"}}),
    Task("settings of the AI review", "At which probability does the AI review merge automatically?", [Call("matching_read_judge_settings")], ["0.99|99"]),
    _change("change the AI review", "The AI review should merge automatically only at 0.995 or more.", "matching.update_judge_settings",
            {"/v1/matching/judge-settings": {"auto_merge_at": 0.995}}, body={"auto_merge_at": 0.995}),
    Task("failing endpoint", "Why do deliveries to the webhook endpoint of the web shop fail?",
         [_ENDPOINTS, Call("webhooks_list_deliveries", {"id": "<shop>", "status": "failed"}), Call("webhooks_read_delivery", {"id": "<shop>", "delivery": "<delivery>"})],
         ["401", "signature mismatch"]),
    Task("list endpoints", "Which webhook endpoints do we have?", [_ENDPOINTS], ["shop.example", "till.example"]),
    Task("resend deliveries", "Resend the failed deliveries to the webhook endpoint of the web shop since 19 November.", [_ENDPOINTS, Call("webhooks_recover", {"id": "<shop>", "body": {"since": "2026-11-19T00:00:00Z"}})],
         approved=["webhooks.recover"], state={"/v1/webhook-endpoints/<shop>/deliveries": {"status": "pending"}}),
    Task("disable an endpoint", "Disable the webhook endpoint of the till.",
         [_ENDPOINTS, Call("webhooks_update", {"id": "<till>", "body": {"status": "disabled"}, "if_match": "*"})],
         approved=["webhooks.update"], state={"/v1/webhook-endpoints/<till>": {"status": "disabled"}}),
    Task("describe an endpoint", "Change the description of the web shop's webhook endpoint to Shop Kiel.",
         [_ENDPOINTS, Call("webhooks_update", {"id": "<shop>", "body": {"description": "Shop Kiel"}, "if_match": "*"})],
         approved=["webhooks.update"], state={"/v1/webhook-endpoints/<shop>": {"description": "Shop Kiel"}}),
    Task("usage of the month", "How much have we used this month, compared with the quota of the plan?", [Call("usage_read")], ["sources"]),
    Task("usage by day", "Show the usage of sources day by day.", [Call("usage_read_series", {"meter": "sources"})], ["sources|2026"]),
    Task("plans", "Which plans are available?", [Call("orgs_list_plans")], ["Full|Standard"]),
    Task("own organisation", "Which plan does our organisation have?", [Call("orgs_read")], ["Full|full"]),
    Task("billing", "Which plan and card does our billing account have?", [Call("billing_read")], ["false|full|no card|not sell"]),
    Task("invoices", "List our invoices.", [Call("billing_list_invoices")], conclusion="There are no invoices.", facts=["no"]),
    Task("who changed a source", "Who changed the source Own warehouse? Look at the audit log.", [Call("audit_list", {"target": "<stock>"})], ["<stock>|Warehouse"]),
    Task("failed requests", "Which API requests failed with an error?", [Call("request_logs_list", {"error_code": "invalid_request"})], ["422", "/v1/sources"]),
    Task("status of the service", "Is the service up? What is the status of each component?", [Call("platform_status")], ["degraded"]),
    Task("incidents", "Were there any incidents of the service?", [Call("platform_list_history")], conclusion="There were no incidents.", facts=["no"]),
    Task("exports", "Which exports do we have?", [Call("exports_list")], conclusion="There are no exports.", facts=["no"]),
    Task("vendors", "Which vendors are in the directory?", [Call("vendor_directory_list")], conclusion="The directory has no vendors.", facts=["no"]),
    _change("remember", "Remember that prices in lists are net.", "assistant.create_memory", {"/v1/assistant/memories": {"content": "Prices in lists are net."}},
            body={"content": "Prices in lists are net."}),
)  # fmt: skip
