"""What people do to be known: sign in, stay signed in, be led in by a link."""
