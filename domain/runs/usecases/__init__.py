"""The use cases of runs, and the engine that carries one out, stage by stage."""
