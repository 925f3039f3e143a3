"""What runs: the use cases of endpoints and deliveries (`service`), and the way from an event to its delivery.

`serving`         has every place where endpoints lie served, each by a deliverer of its own
`deliverer`       takes up: `Deliverer.run(stop)` serves the endpoints of the shards that this process holds
`intake`          takes the events that an endpoint wants out of the log, into its queue
`endpoint_queue`  one endpoint's open deliveries: what is next, how far it has come; the only one to change them
`sending`         sends what is due, several at a time, and draws the consequences
`posting`         does one attempt: body, signature, POST, verdict (domain/webhooks/schedule.py)
`payloads`        makes the body: thin, or fat with its object, combined from several events
`recording`       records what came of it, all endpoints' outcomes in one transaction
"""
