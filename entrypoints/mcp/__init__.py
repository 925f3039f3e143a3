"""Model Context Protocol: operations as tools for agents at /mcp."""
