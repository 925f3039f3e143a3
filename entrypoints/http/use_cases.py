"""The bundle of services that handlers may call, so that the whole application is handed over as one typed value."""

from dataclasses import dataclass

from domain.catalogue.usecases import CatalogueService
from domain.changes.usecases.service import ChangesService
from domain.orgs.usecases import OrgService
from domain.platform.usecases import PlatformService
from domain.request_logs.usecases import RequestLogService
from domain.runs.usecases.service import RunService
from domain.sources.usecases.service import SourceService
from domain.uploads.usecases import UploadService
from domain.webhooks.usecases.service import WebhookService


@dataclass(frozen=True, slots=True)
class UseCases:
    """What every process builds once and every handler gets."""

    orgs: OrgService
    platform: PlatformService
    request_logs: RequestLogService
    sources: SourceService
    runs: RunService
    uploads: UploadService
    catalogue: CatalogueService
    webhooks: WebhookService
    changes: ChangesService
