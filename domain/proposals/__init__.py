"""Changes that agents propose and people accept or reject."""
