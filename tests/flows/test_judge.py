"""Matches of two sources: the worker queries a model, whose answer only counts with correct quotes."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.flows.service_processes import ServiceProcesses, wait_until
from tests.postgres.databases import create_database

MAKER = b"Item No.,Product Name,Price\nA-1,Halden oak dining table 180 cm,899\nA-2,Halden oak bench 140 cm,249\nA-3,Merrow walnut sideboard,640\n"
SHOP = b'Item No.,Product Name,Price\nB-1,"Dining table HALDEN, oak",879\nB-2,"Bench HALDEN, oak",259\nB-3,Sorrel lamp,99\n'


def _scripted_answer(contains: str, subject: str, candidate: str) -> Any:
    reason = {"field": "title", "subject_quote": subject, "candidate_quote": candidate}
    answer = {"choice": "same", "confidence": 0.99, "reasons": [reason], "note": "The same maker's."}
    return {"task": "matching.judge", "contains": contains, "answer": answer}


def test_a_worker_sends_open_pairs_to_the_model(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    answers = [_scripted_answer("ining table", "oak", "oak"), _scripted_answer("ench", "never written", "oak")]
    script.write_text(json.dumps({"answers": answers}), "utf-8")
    services = ServiceProcesses(
        asyncio.run(create_database("judging")), tmp_path, {"JOINERY_MODELS": f"scripted://{script}"}
    )
    try:
        services.start("worker")
        services.start_api()
        fjord = services.create_organisation()
        settings = fjord.api.call("PATCH", "/v1/matching/judge-settings", {"enabled": True})
        assert settings.status == 200, settings.body
        for content in (MAKER, SHOP):
            assert (
                fjord.api.import_file(fjord.api.create_source("file", config={"currency": "usd"}), content)["status"]
                == "succeeded"
            )

        def judged() -> Any:
            pairs = fjord.api.get("/v1/match-pairs")["data"]
            return pairs if len(pairs) == 2 and all("judgement" in pair for pair in pairs) else None

        pairs = {pair["judgement"]["outcome"]: pair for pair in wait_until(judged, "both pairs are judged", 30)}
        assert pairs.keys() == {"merged", "failed"}
        assert (pairs["merged"]["status"], pairs["failed"]["status"]) == ("merged", "open")
        assert "never written" in pairs["failed"]["judgement"]["note"]
        assert pairs["merged"]["judgement"]["reasons"][0]["subject_quote"] == "oak"
        merge = fjord.api.get(f"/v1/merges/{pairs['merged']['merge']}")
        assert (merge["decided_by"], merge["reason"]) == ("judge", "The same maker's.")
        assert len(fjord.api.get("/v1/products")["data"]) == 5
        fjord.api.post(f"/v1/merges/{merge['id']}/undo")
        assert len(fjord.api.get("/v1/products")["data"]) == 6
    finally:
        services.stop()
