"""Process `joinery api`: HTTP API, console, documentation, MCP and OAuth as one application."""
