"""The process that parses web documents, mail and dense bodies, and lists categories, without secrets and without access to stores."""
