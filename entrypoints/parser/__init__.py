"""The process that parses web documents and mail, checks bodies and lists categories: it has no secret and no store."""
