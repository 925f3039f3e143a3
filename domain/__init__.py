"""Business rules of furniture catalogues, independent of databases, frameworks and protocols."""
