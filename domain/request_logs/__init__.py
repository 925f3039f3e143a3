"""Request logs: what an organisation's credentials asked, and what was answered."""
