"""Object store in an S3-compatible bucket."""
