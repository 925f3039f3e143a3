"""SMTP (RFC 5321): mail that the service sends."""
