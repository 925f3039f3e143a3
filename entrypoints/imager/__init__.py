"""The process that decodes images: it has no secret and no store."""
