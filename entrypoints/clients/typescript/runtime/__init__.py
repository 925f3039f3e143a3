"""What the generated methods stand on, for Node.js and browsers; nothing here is Python."""
