"""The operations of the API as declared and described: independent of who serves them, and of the areas that have them."""
