"""MCP, the Model Context Protocol: the operations that agents may call, as tools at /mcp."""
