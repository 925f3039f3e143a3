"""JSON of agreements and acceptances."""

from typing import Any, Final

from adapters.api_json.resource import Body, JsonResource, create_decoder
from domain.agreements.model import (
    MAX_SIGNER_CHARS,
    MAX_TEXT_BYTES,
    MAX_TITLE_CHARS,
    SHA256_EXAMPLE,
    AgreementAcceptance,
    AgreementKind,
    AgreementStanding,
    AgreementState,
    NewAcceptance,
)
from domain.kernel import schema
from domain.kernel.resource import Field, RenderContext, computed, optional


def _select_version_field(name: str, field_schema: schema.Schema) -> Field:
    """Return a property with a field of the newest version; omitted if no version is published."""
    return optional(computed(field_schema, lambda state, _: getattr(state.newest, name, None)))


def _find_deadline(state: AgreementState, _: RenderContext) -> Any:
    return state.newest.accept_by if state.newest and state.standing is AgreementStanding.GRACE else None


def _render_acceptance(state: AgreementState, view: RenderContext) -> Any:
    return ACCEPTANCE.render(state.acceptance, view) if state.acceptance else None


KIND: Final = schema.enum(*AgreementKind)
ACCEPTANCE = JsonResource.from_dataclass(
    AgreementAcceptance,
    "agreement_acceptance",
    description="An organisation's acceptance of one version of an agreement, with its evidence. It never changes.",
)
AGREEMENT = JsonResource[AgreementState](
    "agreement",
    {
        "id": _select_version_field("id", schema.id_schema("agr", "The ID of the newest version.")),
        "kind": KIND,
        "version": _select_version_field("version", schema.integer(1, minimum=1)),
        "title": _select_version_field("title", schema.text("Data agreement", max_length=MAX_TITLE_CHARS)),
        "text": _select_version_field(
            "text", schema.text("# Data agreement\n", max_length=MAX_TEXT_BYTES, description="The text in Markdown.")
        ),
        "sha256": _select_version_field(
            "sha256",
            schema.text(SHA256_EXAMPLE, max_length=64, description="SHA-256 hash of `text` in UTF-8, in hexadecimal."),
        ),
        "published_at": _select_version_field("published_at", schema.timestamp()),
        "standing": schema.enum(*AgreementStanding)
        | {
            "description": "`accepted`: the newest version is accepted. `grace`: an earlier version is accepted, which is sufficient "
            "until `accept_by`. `required`: the newest version must be accepted. `unpublished`: there is no version yet."
        },
        "accept_by": optional(
            computed(schema.timestamp("End of the grace period; present if the standing is `grace`."), _find_deadline)
        ),
        "acceptance": Field(ACCEPTANCE.schema, _render_acceptance, optional=True, rendered=True),
    },
    description="The newest version of an agreement, and the organisation's standing.",
)
ACCEPTANCE_BODY = Body[NewAcceptance](
    schema.with_title(
        "agreement_acceptance_create",
        schema.strict_object(
            {
                "version": schema.integer(1, minimum=1, description="The newest version."),
                "sha256": schema.text(SHA256_EXAMPLE, max_length=64, description="The hash of the newest version."),
                "signer_name": schema.text("Ada Moreau", max_length=MAX_SIGNER_CHARS),
                "signer_title": schema.text("Managing director", max_length=MAX_SIGNER_CHARS),
                "authority_confirmed": schema.boolean(
                    description="Whether you may accept the agreement for the organisation. Must be true."
                ),
            },
            required=("version", "sha256", "signer_name", "signer_title", "authority_confirmed"),
        ),
    ),
    create_decoder(NewAcceptance),
)
