"""Scheduler process. One scheduler is the leader, which notifies workers of due jobs and runs periodic tasks."""
