"""Who sent a message: SPF by pyspf, DKIM by dkimpy, and DMARC over both."""
