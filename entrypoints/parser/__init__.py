"""The process that parses web documents and mail: it has no secret and no store."""
