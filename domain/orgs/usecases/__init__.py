"""Reading organisations and plans, and an organisation's leaving."""
