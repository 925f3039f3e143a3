"""Simulated placement of tenants of different sizes on the nodes of a Citus cluster.

The hash of the organisation's ID determines the shard of a tenant. Each shard covers an equal range of a 32-bit hash,
and shards are assigned to the nodes in turn. The hash function is not that of PostgreSQL, but as uniform. The weight
of a tenant is its share of all data or of the total load.
"""

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace


def compute_zipf_shares(count: int, exponent: float) -> list[float]:
    """Return the shares of `count` tenants, the largest first, in proportion to rank^-exponent."""
    weights = [rank**-exponent for rank in range(1, count + 1)]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def draw_loads(sizes: Sequence[float], spread: float, random_source: random.Random) -> list[float]:
    """Draw the shares of the load, in proportion to size times a lognormal factor with sigma `spread`."""
    weights = [size * random_source.lognormvariate(0, spread) for size in sizes]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def compute_shard(tenant: str, shards: int) -> int:
    """Return the shard of the tenant."""
    return int.from_bytes(hashlib.blake2b(tenant.encode(), digest_size=4).digest()) * shards >> 32


@dataclass(frozen=True)
class Placement:
    """Placement of tenants on shards and of shards on nodes.

    Attributes:
        shards: Shard of each tenant.
        nodes: Node of each shard. Isolated tenants have a shard for themselves, at the end.
        count: Number of nodes.
    """

    shards: Sequence[int]
    nodes: Sequence[int]
    count: int

    @classmethod
    def create_by_hash(cls, tenants: Sequence[str], shards: int, nodes: int) -> "Placement":
        """Place the tenants as `create_distributed_table` of Citus does."""
        return cls(
            [compute_shard(tenant, shards) for tenant in tenants], [shard % nodes for shard in range(shards)], nodes
        )

    def sum_by_shard(self, weights: Sequence[float]) -> list[float]:
        """Return the weight of each shard."""
        shard_weights = [0.0] * len(self.nodes)
        for shard, weight in zip(self.shards, weights, strict=True):
            shard_weights[shard] += weight
        return shard_weights

    def sum_by_node(self, weights: Sequence[float]) -> list[float]:
        """Return the weight of each node."""
        node_weights = [0.0] * self.count
        for node, weight in zip(self.nodes, self.sum_by_shard(weights), strict=True):
            node_weights[node] += weight
        return node_weights

    def compute_peak_ratio(self, weights: Sequence[float]) -> float:
        """Return the weight of the heaviest node divided by the mean: from 1 (even) to `count` (everything on one node)."""
        node_weights = self.sum_by_node(weights)
        return max(node_weights) / (math.fsum(node_weights) / self.count)

    def isolate(self, tenants: Sequence[int], weights: Sequence[float]) -> "Placement":
        """Move each given tenant to a new shard; the heaviest tenant first, each to the node that is then the lightest."""
        shards, nodes = list(self.shards), list(self.nodes)
        node_weights = self.sum_by_node(weights)
        for tenant in tenants:
            node_weights[nodes[shards[tenant]]] -= weights[tenant]
        for tenant in sorted(tenants, key=lambda number: -weights[number]):
            lightest = min(range(self.count), key=node_weights.__getitem__)
            node_weights[lightest] += weights[tenant]
            shards[tenant] = len(nodes)
            nodes.append(lightest)
        return replace(self, shards=shards, nodes=nodes)

    def rebalance(self, weights: Sequence[float], tolerance: float = 0.02) -> "tuple[Placement, Mapping[int, int]]":
        """Move single shards from the heaviest node to the lightest one.

        It ends when their difference is at most `tolerance` times the mean, or when no move would reduce it.

        Returns:
            The new placement, and the new node of each moved shard.
        """
        nodes, shard_weights, node_weights = list(self.nodes), self.sum_by_shard(weights), self.sum_by_node(weights)
        mean, moves = math.fsum(node_weights) / self.count, dict[int, int]()
        while True:
            lightest, heaviest = (
                min(range(self.count), key=node_weights.__getitem__),
                max(range(self.count), key=node_weights.__getitem__),
            )
            difference = node_weights[heaviest] - node_weights[lightest]
            movable = [
                shard
                for shard, node in enumerate(nodes)
                if node == heaviest and 0 < shard_weights[shard] < difference * (1 - 1e-9)
            ]
            if difference <= tolerance * mean or not movable:
                return replace(self, nodes=nodes), moves
            best = min(movable, key=lambda shard: abs(shard_weights[shard] - difference / 2))
            node_weights[heaviest] -= shard_weights[best]
            node_weights[lightest] += shard_weights[best]
            nodes[best] = moves[best] = lightest
