"""What every store and service must do, on each PostgreSQL that is given (conftest.py)."""
