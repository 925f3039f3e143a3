"""`joinery up`: supervisor of a database, a queue and the service's processes."""
