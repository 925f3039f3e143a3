"""Where tenants of very different sizes come to lie on the nodes of a cluster, reckoned as Citus places them.

A tenant's shard goes by the hash of its organisation: shards have equal ranges of a 32-bit hash, and lie on the nodes in
turn. The hash here is not PostgreSQL's, only as even. What a tenant weighs is a share of the whole: of data, or of load.
"""

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace


def zipf(count: int, exponent: float) -> list[float]:
    """The shares of `count` tenants, the largest first: that of rank r goes by r to the power of minus `exponent`."""
    weights = [rank**-exponent for rank in range(1, count + 1)]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def loads_of(sizes: Sequence[float], spread: float, dice: random.Random) -> list[float]:
    """What tenants of these sizes ask for: some far more than others of their size (lognormal with sigma `spread`)."""
    weights = [size * dice.lognormvariate(0, spread) for size in sizes]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def shard_of(tenant: str, shards: int) -> int:
    """The number of the range that the hash falls into."""
    return int.from_bytes(hashlib.blake2b(tenant.encode(), digest_size=4).digest()) * shards >> 32


@dataclass(frozen=True)
class Placement:
    """`shards` holds each tenant's, by number; `nodes` each shard's. Isolated tenants have shards of their own."""

    shards: Sequence[int]
    nodes: Sequence[int]
    count: int

    @classmethod
    def hashed(cls, tenants: Sequence[str], shards: int, nodes: int) -> "Placement":
        """As `create_distributed_table` places them."""
        return cls([shard_of(tenant, shards) for tenant in tenants], [shard % nodes for shard in range(shards)], nodes)

    def by_shard(self, weights: Sequence[float]) -> list[float]:
        """What each shard weighs when tenants weigh this."""
        found = [0.0] * len(self.nodes)
        for shard, weight in zip(self.shards, weights, strict=True):
            found[shard] += weight
        return found

    def by_node(self, weights: Sequence[float]) -> list[float]:
        """What each node weighs."""
        found = [0.0] * self.count
        for node, weight in zip(self.nodes, self.by_shard(weights), strict=True):
            found[node] += weight
        return found

    def peak(self, weights: Sequence[float]) -> float:
        """The heaviest node's weight beside the average: 1 is even, `count` has everything on one node."""
        found = self.by_node(weights)
        return max(found) / (math.fsum(found) / self.count)

    def isolated(self, tenants: Sequence[int], weights: Sequence[float]) -> "Placement":
        """Each of these tenants gets a shard of its own, which goes to the node that is then the lightest, the heaviest first."""
        shards, nodes = list(self.shards), list(self.nodes)
        by_node = self.by_node(weights)
        for tenant in tenants:
            by_node[nodes[shards[tenant]]] -= weights[tenant]
        for tenant in sorted(tenants, key=lambda one: -weights[one]):
            lightest = min(range(self.count), key=by_node.__getitem__)
            by_node[lightest] += weights[tenant]
            shards[tenant] = len(nodes)
            nodes.append(lightest)
        return replace(self, shards=shards, nodes=nodes)

    def rebalanced(self, weights: Sequence[float], within: float = 0.02) -> "tuple[Placement, Mapping[int, int]]":
        """Shards move one at a time from the heaviest node to the lightest until they differ little, or none would help.

        Answers the moves as well: the shard and where it goes.
        """
        nodes, by_shard, by_node = list(self.nodes), self.by_shard(weights), self.by_node(weights)
        average, moves = math.fsum(by_node) / self.count, dict[int, int]()
        while True:
            light, heavy = (
                min(range(self.count), key=by_node.__getitem__),
                max(range(self.count), key=by_node.__getitem__),
            )
            gap = by_node[heavy] - by_node[light]
            movable = [
                shard for shard, node in enumerate(nodes) if node == heavy and 0 < by_shard[shard] < gap * (1 - 1e-9)
            ]
            if gap <= within * average or not movable:
                return replace(self, nodes=nodes), moves
            best = min(movable, key=lambda shard: abs(by_shard[shard] - gap / 2))
            by_node[heavy] -= by_shard[best]
            by_node[light] += by_shard[best]
            nodes[best] = moves[best] = light
