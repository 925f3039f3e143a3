"""Reconstruction of few organisations' numbers from published answers by linear algebra.

An answer is a linear form: coefficients of atoms, which are the unknown numbers of single organisations. A combination of
answers discloses the organisations in S if it contains atoms of S and no others. Such a combination exists if and only if
the rank of the answers decreases when the atoms of S are left out. (A nonzero combination that vanishes outside of S.)
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

Atom = tuple[str, ...]
"""Unknown number; the first part is the organisation."""
LinearForm = Mapping[Atom, int]


def compute_rank(columns: Iterable[Sequence[int]]) -> int:
    """Return the rank of a matrix by exact Gaussian elimination."""
    rows = [[Fraction(value) for value in column] for column in columns]
    rank = 0
    for position in range(len(rows[0]) if rows else 0):
        pivot = next((row for row in rows[rank:] if row[position]), None)
        if pivot is None:
            continue
        rows.remove(pivot)
        for row in rows[rank:]:
            if factor := row[position] / pivot[position]:
                row[position:] = [
                    value - factor * other for value, other in zip(row[position:], pivot[position:], strict=True)
                ]
        rows.insert(rank, pivot)
        rank += 1
    return rank


def find_disclosed(answers: Sequence[LinearForm], organisations: Sequence[str], size: int) -> list[tuple[str, ...]]:
    """Return the sets of `size` organisations about which a combination of any number of answers discloses a number."""
    columns_by_org: dict[str, set[tuple[int, ...]]] = {org: set() for org in organisations}
    for atom in {atom for answer in answers for atom in answer}:
        columns_by_org[atom[0]].add(tuple(answer.get(atom, 0) for answer in answers))
    rank = compute_rank(set().union(*columns_by_org.values()))
    rank_by_columns: dict[frozenset[tuple[int, ...]], int] = {}
    disclosed = []
    for subset in combinations(organisations, size):
        others = frozenset().union(*(columns for org, columns in columns_by_org.items() if org not in subset))
        if others not in rank_by_columns:
            rank_by_columns[others] = compute_rank(others)
        if rank_by_columns[others] < rank:
            disclosed.append(subset)
    return disclosed
