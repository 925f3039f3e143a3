"""What the generated methods stand on: requests and retries, pages, the change feed, files, webhooks."""
