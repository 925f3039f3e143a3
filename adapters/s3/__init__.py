"""Objects in an S3-compatible store."""
