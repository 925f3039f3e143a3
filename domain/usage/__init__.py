"""What an organisation has used of what is paid for elsewhere, put down as it happens."""
