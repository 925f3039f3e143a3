"""The scheduler process: the one that leads among many wakes workers and runs what is due now and then."""
