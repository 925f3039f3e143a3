"""The process that parses web documents and mail, and lists categories: it has no secret and no store."""
