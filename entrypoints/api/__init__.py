"""The process `joinery api`: the edge, the console, the docs, MCP and OAuth as one application."""
