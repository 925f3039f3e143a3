"""TypeScript client in Chromium, on a page of another origin than the API."""

import functools
import shutil
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.flows.feeds import build_catalogue
from tests.flows.service_processes import ServiceProcesses
from tests.support.shipped_clients import unpack_tarball

pytestmark = pytest.mark.clients
STORY = """async ([baseUrl, key, feed]) => {
  const { Joinery, verifyWebhook, WebhookVerificationError } = await import('/node_modules/joinery-client/index.js')
  const client = new Joinery({ baseUrl, key })
  const source = await client.sources.create({ name: 'Files', kind: 'file', config: { currency: 'usd' } })
  const upload = await client.sources.uploadFile(source.id, new File([feed], 'feed.csv'))
  const { status } = await client.runs.wait(upload.run)
  let products = 0
  for await (const product of client.products.list({ limit: 2 })) products += product.object === 'product'
  const { name } = await client.sources.update(source.id, { name: 'Renamed' }, { ifMatch: source.version })
  let kept = null
  const cursorFile = { load: () => null, save: (cursor) => { kept = cursor } }
  for await (const event of client.changes.follow({ limit: 5, cursorFile })) if (kept && event) break
  const refused = await verifyWebhook('{}', {}, 'whsec_MDEyMzQ1Njc4OWFiY2RlZg==').catch((error) => error instanceof WebhookVerificationError)
  const missing = await client.products.get('prod_0000000000000000000000').catch((error) => [error.name, !!error.requestId])
  const here = new Joinery({ baseUrl: location.origin, key: 'k' }) // whose server redirects what is a folder
  const redirected = await here.orgs.get().catch((error) => [error.name, error.status, error.message.includes('redirects')])
  return [status, products, name, kept !== null, refused, missing, redirected]
}"""


@pytest.fixture
def page_address(tmp_path: Path) -> Iterator[str]:
    """Serve an empty page and the package."""
    unpack_tarball(tmp_path)
    (tmp_path / "v1" / "org").mkdir(parents=True)
    (tmp_path / "index.html").write_text("<!doctype html><title>A shop</title>")
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/index.html"
    finally:
        server.shutdown()
        server.server_close()


def test_the_client_works_in_a_browser(services: ServiceProcesses, page_address: str) -> None:
    api: Any = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no Chromium")
    key = services.create_organisation(livemode=False).api.secret
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(page_address)
        answered = page.evaluate(STORY, [f"http://127.0.0.1:{services.port}", key, build_catalogue(5).decode()])
        browser.close()
    assert answered == ["succeeded", 5, "Renamed", True, True, ["NotFound", True], ["JoineryError", None, True]]
