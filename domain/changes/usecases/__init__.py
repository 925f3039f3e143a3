"""Reading of event logs, and subscriptions to them.

`log_reader`: bounds of logs, and reading with limits and with the reader's licences
`log_tailer`: `LogTailer.run()` reads new events once for all subscribers: long polls, streams, webhooks
`network`: `NetworkRelay.run()` copies events of published catalogues into the network logs
`service`: the change feed: pages, newest events, long polls
"""
