"""The console's pages, a module for each noun; entrypoints/console/registry.py lists them."""
