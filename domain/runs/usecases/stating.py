"""What a feed or a push states, applied to the catalogue product by product, and a fingerprint for each."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from domain.catalogue.batch import RowFingerprint
from domain.catalogue.model import Product, Variant
from domain.catalogue.reconciler import CatalogueReconciler
from domain.catalogue.statements import ProductStatement
from domain.ingestion.merging import RecordMerger
from domain.kernel.problems import Problem, ProblemKind
from domain.runs.chunks import outdated
from domain.runs.model import PushInput, Run
from domain.runs.usecases.chunking import ComparedChunk


@dataclass(slots=True)
class Stating:
    """Applies statements of one compared chunk; `room` is how many problems the run still keeps word by word."""

    reconciler: CatalogueReconciler
    compared: ComparedChunk
    run: Run
    room: int

    def apply(self, statements: Sequence[ProductStatement], problems: Iterable[Problem]) -> None:
        """Bring the catalogue to them; `problems` were found while they were read. The statements are used up by it."""
        troubles = Counter(problem.external_id for problem in problems)
        if isinstance(self.run.input, PushInput):
            self.reconciler.replaces_data = True
            for key, records in groupby(statements, lambda record: record.key):
                told = len(self.reconciler.problems)
                if (merged := self._merged(key, list(records))) is not None:
                    self._state(merged, troubles, told)
        else:
            for statement in statements:
                self._state(statement, troubles, len(self.reconciler.problems))
        if not self.run.complete:
            moved = sorted(self.reconciler.moved_from)
            self.reconciler.batch.outdated.extend(outdated(key, self.run.stream) for key in moved)

    def apply_stock(
        self,
        found: Mapping[str, tuple[Product, Variant]],
        statements: Sequence[ProductStatement],
        problems: Iterable[Problem],
    ) -> None:
        """The same of a stock sheet, whose keys name the variants that were `found`; others are told."""
        reconciler, troubles = self.reconciler, Counter(problem.external_id for problem in problems)
        chunk = self.compared.chunk
        for statement in statements:
            key = statement.key
            if key not in found:
                detail = f"The catalogue has no item {key}, or more than one; its stock was left out."
                told = Problem("sku", ProblemKind.MISSING, detail, line=chunk.lines[key], external_id=key)
                reconciler.problems.append(told)
                continue
            product, variant = found[key]
            for stated in statement.variants:
                stated.key = variant.key
                reconciler.stock(product, stated)
            mark = replace(chunk.fingerprints[key], product=product.id, problems=troubles[key])
            reconciler.batch.fingerprints.append(mark)

    def _state(self, statement: ProductStatement, troubles: "Counter[str | None]", told: int) -> None:
        reconciler, key = self.reconciler, statement.key
        reconciler.line = self.compared.chunk.lines[key]
        product = reconciler.product(statement)
        if len(reconciler.problems) > told:
            problems = reconciler.problems
            problems[told:] = [replace(problem, external_id=key) for problem in problems[told:]]
        if product.key == key:
            reconciler.batch.fingerprints.append(self._mark(key, product, troubles[key], told))
        else:  # what was stated under the product's own key is no longer what it holds
            reconciler.batch.outdated.append(outdated(product.key, self.run.stream))

    def _merged(self, key: str, records: Sequence[ProductStatement]) -> ProductStatement | None:
        """The records of a product laid over what the source states of it already."""
        reconciler, diff = self.reconciler, self.compared.diff
        resumed = key in diff.resumed or key in diff.returned
        product = reconciler.products.get(key)
        merger = RecordMerger(product, lambda name: reconciler.held(name, key), self.run.complete, resumed)
        statement = merger.merged(records)
        line = self.compared.chunk.lines[key]
        reconciler.problems += [replace(problem, line=line, external_id=key) for problem in merger.problems]
        return statement

    def _mark(self, key: str, product: Product, problems: int, told: int) -> RowFingerprint:
        """The fingerprint to keep: none that counts, of what the catalogue could not take and the next run shall tell again."""
        mark = self.compared.chunk.fingerprints[key]
        refused = told < len(self.reconciler.problems) and told < self.room
        return replace(mark, fingerprint=b"" if refused else mark.fingerprint, product=product.id, problems=problems)
