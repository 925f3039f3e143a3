"""Parser of email messages (RFC 5322, MIME) with limits of size, number and depth."""
