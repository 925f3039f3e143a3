"""`joinery up --demo`: an organisation that reads the feeds of two invented vendors, served from this machine."""
