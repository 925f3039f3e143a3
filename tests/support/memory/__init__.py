"""What lies outside of the database, for tests: objects, feed readers, hosts, messages, tracing, clocks and event logs in memory."""
