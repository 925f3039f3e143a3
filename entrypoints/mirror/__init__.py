"""`joinery mirror`: a copy of a catalogue, updated through the public API (docs/exports.md)."""
