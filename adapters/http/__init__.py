"""The guarded way out: every request the product makes for others goes through here."""
