"""The documentation site: pages for people, made of the operation table, the error codes, the event types and docs/."""
