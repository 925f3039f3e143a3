"""Products, variants and offers of a catalogue."""
