"""A copy of a catalogue that keeps itself right, through the public API alone: what `joinery mirror` runs (docs/exports.md)."""
