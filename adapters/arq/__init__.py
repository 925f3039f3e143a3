"""Queue by arq and Redis, which notifies workers of due jobs. The jobs themselves are stored in the database."""
