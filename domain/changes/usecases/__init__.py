"""What runs: serving the log to those who read it, and following it as it grows.

`high_watermark`  how far the log goes
`reading`         a bounded look into it, as a reader's licences show it
`subscribing`     one log as those who follow it share it
`tailing`         `LogTailer.run()` reads what is new once, for all who follow: long polls, streams, webhooks
`network`         `NetworkRelay.run()` copies what publishers' logs have for others into the network's
`service`         the change feed: pages, the newest events, long polls
"""
