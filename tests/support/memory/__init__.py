"""Fakes in memory of everything outside of the database: objects, feed readers, hosts, messages, tracing, clocks, event logs."""
