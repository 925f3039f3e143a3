"""Products, variants and offers: what a catalogue holds."""
