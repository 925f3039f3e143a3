"""Use cases of runs, and the stages that execute a run."""
