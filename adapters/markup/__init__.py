"""Parsers of web documents: HTML by lxml, robots.txt by protego, sitemaps by expat."""
