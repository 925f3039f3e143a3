"""Serving the event logs to their readers, and following them as they grow.

`reading`: bounds of logs, and bounded reads with the reader's licences

`tailing`: `LogTailer.run()` reads new events once for all followers: long polls, streams, webhooks

`network`: `NetworkRelay.run()` copies publishers' events into the network logs

`service`: the change feed: pages, newest events, long polls
"""
