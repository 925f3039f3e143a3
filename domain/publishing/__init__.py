"""Publication of vendors' catalogues, and licences to read them (docs/publishing.md)."""
