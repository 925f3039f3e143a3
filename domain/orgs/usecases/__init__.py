"""Reading organisations and plans, and deletion of organisations."""
