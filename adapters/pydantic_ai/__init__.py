"""Language models through pydantic-ai. Its modules are imported at the first request to a model, because the import takes seconds."""
