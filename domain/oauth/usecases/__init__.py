"""What apps and people ask of OAuth: apps kept, consent given, codes and tokens exchanged."""
