"""Scheduler process: the leader among several wakes workers and runs periodic tasks."""
