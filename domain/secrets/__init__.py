"""The deployment's secret: keys derived from it, values encrypted with it, and its replacement."""
