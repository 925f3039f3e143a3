"""Worker process: executes jobs and delivers events to the webhook endpoints of its shards."""
