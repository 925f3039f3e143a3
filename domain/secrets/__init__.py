"""The operator's secret: keys derived from it, values sealed under it, and its replacement."""
