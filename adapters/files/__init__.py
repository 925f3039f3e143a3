"""Objects as files of one folder, for a single machine."""
