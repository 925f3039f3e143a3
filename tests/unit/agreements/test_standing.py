"""The standing of an organisation, and the text of an agreement."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.agreements.model import (
    MAX_TEXT_BYTES,
    Agreement,
    AgreementAcceptance,
    AgreementStanding,
    compute_standing,
    normalise_text,
)
from domain.kernel.errors import InvalidRequest
from entrypoints.site.schemas import render_document
from tests.support import builders

EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(0, 40)),
        st.tuples(st.just("accept"), st.just(0)),
        st.tuples(st.just("pass"), st.integers(1, 25)),
    ),
    max_size=30,
)
V1 = builders.agreement()


@given(EVENTS)
def test_the_standing_follows_from_any_history(events: list[tuple[str, int]]) -> None:
    """The expected standing is kept step by step, without versions: what is signed, and until when it counts."""
    now, newest, acceptance = builders.MOMENT, None, None
    is_current, has_signed, deadline = False, False, builders.MOMENT
    for event, days in events:
        if event == "publish":
            version = newest.version + 1 if newest else 1
            newest = replace(V1, version=version, published_at=now, grace_days=days)
            is_current, deadline = False, now + timedelta(days=days)
        elif event == "accept" and newest is not None:
            acceptance, is_current, has_signed = builders.acceptance(newest), True, True
        elif event == "pass":
            now += timedelta(days=days)
        standing = compute_standing(newest, acceptance, now)
        if newest is None:
            assert standing is AgreementStanding.UNPUBLISHED
        elif is_current:
            assert standing is AgreementStanding.ACCEPTED
        elif has_signed and now < deadline:
            assert standing is AgreementStanding.GRACE
        else:
            assert standing is AgreementStanding.REQUIRED
        assert standing.is_sufficient is (is_current or (has_signed and now < deadline))


@pytest.mark.parametrize(
    ("newest", "acceptance", "days", "standing"),
    [
        (None, None, 0, AgreementStanding.UNPUBLISHED),
        (V1, None, 0, AgreementStanding.REQUIRED),
        (V1, builders.acceptance(V1), 900, AgreementStanding.ACCEPTED),
        (replace(V1, version=2), builders.acceptance(V1), 29, AgreementStanding.GRACE),
        (replace(V1, version=2), builders.acceptance(V1), 30, AgreementStanding.REQUIRED),
        (replace(V1, version=2, grace_days=0), builders.acceptance(V1), 0, AgreementStanding.REQUIRED),
    ],
)
def test_the_grace_period_ends_at_the_deadline(
    newest: Agreement | None, acceptance: AgreementAcceptance | None, days: int, standing: AgreementStanding
) -> None:
    assert compute_standing(newest, acceptance, builders.MOMENT + timedelta(days=days)) is standing


def test_texts_are_normalised() -> None:
    assert normalise_text(b"\xef\xbb\xbf# One\r\n\r\ntwo\rthree\n\n") == "# One\n\ntwo\nthree\n"
    assert normalise_text(b"  indented\n") == normalise_text(b"\n  indented") == "  indented\n"


@pytest.mark.parametrize("raw", [b"", b" \n", b"a\0b", b"\xff", b"x" * (MAX_TEXT_BYTES + 1)])
def test_other_files_are_refused(raw: bytes) -> None:
    with pytest.raises(InvalidRequest):
        normalise_text(raw)


def test_the_text_is_rendered_without_html_scripts_and_images() -> None:
    html = render_document(
        "# Title\n\n<script>evil()</script> <b>x</b>\n\n[a](javascript:evil()) [b](https://ok.example) ![c](https://c.example/c.png)"
    )
    assert html.startswith("<h2>Title</h2>") and '<a href="https://ok.example">b</a>' in html
    assert "<script" not in html and "<b>" not in html and "<img" not in html and 'href="javascript' not in html
