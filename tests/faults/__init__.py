"""Crashes, disconnects and full disks in the middle of work leave no trace."""
