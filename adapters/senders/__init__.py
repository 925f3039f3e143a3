"""Authentication of a message's sender: SPF by pyspf, DKIM by dkimpy, and DMARC over both."""
