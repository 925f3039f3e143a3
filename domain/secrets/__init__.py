"""The operator's secret: what is sealed and signed under it, and how another one takes its place."""
