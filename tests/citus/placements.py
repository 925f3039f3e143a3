"""Placement of an organisation's rows, by the coordinator and by the nodes."""

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.flows.service_processes import ServiceProcesses
from tests.support.citus import build_address

_NODE = """
SELECT n.nodename || ':' || n.nodeport FROM pg_dist_placement p JOIN pg_dist_node n USING (groupid)
WHERE p.shardid = get_shard_id_for_distribution_column('jobs', %(org)s::text) AND n.noderole = 'primary'
"""
_SHARDS = """
SELECT shard_name(s.logicalrelid, s.shardid) FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid)
JOIN pg_dist_local_group g USING (groupid) WHERE s.logicalrelid = %(table)s::regclass
"""


def find_node(services: ServiceProcesses, org: str) -> str:
    """Return the name of the node that stores the organisation."""
    return str(services.fetch_value(_NODE, org=org))


def count_rows(services: ServiceProcesses, node: str, table: str, org: str) -> int:
    """Count the organisation's rows in the node's own shards."""
    host, port = node.split(":")
    address = build_address(host, int(port), str(conninfo_to_dict(services.database_url)["dbname"]))
    with psycopg.connect(address, autocommit=True) as connection:
        found = 0
        for (shard,) in connection.execute(_SHARDS, {"table": table}).fetchall():
            rows: Any = connection.execute(f"SELECT count(*) FROM {shard} WHERE org = %s".encode(), (org,)).fetchone()
            found += rows[0]
        return found
