"""The use cases of endpoints and deliveries (`service`), and the path from an event to its delivery.

`deliverer`       serves the endpoints of every place that this process holds, and reads their events into their queues
`endpoint_queue`  one endpoint's open deliveries: what is next, how far it has come; the only one to change them
`sending`         sends what is due, several at a time, and draws the consequences
`posting`         does one attempt: body, signature, POST, verdict (domain/webhooks/model.py), span
`payloads`        makes the body: thin, or fat with its object, combined from several events
`recording`       records what came of it, all endpoints' outcomes in one transaction
`secrets`         signatures, and former secrets kept for undoing
"""
