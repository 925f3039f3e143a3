"""Use cases of agents: their settings and proposals, and the tools for AI agents."""
