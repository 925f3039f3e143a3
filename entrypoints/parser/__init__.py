"""The process that parses web documents and mail, without secrets and without access to stores."""
