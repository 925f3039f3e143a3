"""JSON of vendor profiles, claims and claim invitations."""

from adapters.api_json.resource import Body, JsonResource, create_decoder, create_nested_field
from domain.brand.model import BrandClaim, ClaimRequest, EvidenceKind, VendorProfile
from domain.brand.usecases.invitations import InvitationPreview
from domain.kernel import schema
from domain.kernel.resource import computed

_LIVEMODE = {"livemode": computed(schema.boolean(), lambda _, view: view.tenant.livemode)}
PROFILE = JsonResource.from_dataclass(
    VendorProfile,
    "vendor_profile",
    _LIVEMODE,
    path="/v1/vendor-profiles/{id}",
    description="A vendor's profile. It does not name the organisation that holds it.",
)
CLAIM = JsonResource.from_dataclass(BrandClaim, "brand_claim", _LIVEMODE, path="/v1/brand/claims/{id}")
INVITATION = JsonResource[InvitationPreview](
    "claim_invitation",
    {
        "id": computed(schema.id_schema("vci"), lambda preview, _: preview.invitation.id),
        "profile": create_nested_field(PROFILE, lambda preview: preview.profile),
        "email": computed(
            schema.text("anna@fjord.example", description="The invited address."),
            lambda preview, _: preview.invitation.email,
        ),
        "expires_at": computed(schema.timestamp(), lambda preview, _: preview.invitation.expires_at),
        "usable": schema.boolean(
            True, "Whether the signed-in member may accept the invitation: its address must be their verified address."
        ),
    },
    description="An open invitation to claim a profile.",
)
_EVIDENCE_INPUT = schema.with_title(
    "claim_evidence_input",
    schema.strict_object(
        {
            "kind": schema.enum(*EvidenceKind),
            "value": schema.text(
                "fjord.example",
                max_length=2000,
                description="The invitation's code, or a reference to a document. For other kinds it may be omitted, or is "
                "the profile's domain.",
            ),
        },
        ("kind",),
    ),
)
CLAIM_BODY = Body(
    schema.with_title(
        "brand_claim_create",
        schema.strict_object(
            {
                "profile": schema.id_schema("vnd", "The claimed profile."),
                "evidence": schema.array(
                    _EVIDENCE_INPUT, min_items=1, max_items=len(EvidenceKind), description="Each kind at most once."
                ),
            },
            ("profile", "evidence"),
        ),
    ),
    create_decoder(ClaimRequest),
)
PREVIEW_BODY = Body(
    schema.with_title(
        "claim_invitation_preview",
        schema.strict_object(
            {"token": schema.text("svc_claim_…", max_length=100, description="The code of the invitation.")}, ("token",)
        ),
    ),
    lambda members: str(members["token"]),
)
