"""Messages in the format of mail (RFC 5322, MIME), read within bounds."""
