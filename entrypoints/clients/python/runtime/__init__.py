"""Runtime of the generated methods: requests and retries, pages, change feed, files, webhooks."""
