"""The package `joinery-client` for TypeScript and JavaScript: what of it is written by hand."""
