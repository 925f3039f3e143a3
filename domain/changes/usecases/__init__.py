"""Serving the event logs to their readers, and following them as they grow.

`reading`  how far each log goes, and a bounded look into it, as a reader's licences show it
`tailing`  `LogTailer.run()` reads what is new once, for all who follow: long polls, streams, webhooks
`network`  `NetworkRelay.run()` copies what publishers' logs have for others into the network's
`service`  the change feed: pages, the newest events, long polls
"""
