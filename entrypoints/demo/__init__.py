"""`joinery up --demo`: an organisation with the feeds of two fictitious vendors, served from this machine."""
