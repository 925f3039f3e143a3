"""Use cases of webhook endpoints and deliveries (`service`), and the delivery of events.

`deliverer`       serves the endpoints of each database, and reads events into the endpoints' queues
`endpoint_queue`  order and progress of the open deliveries of one endpoint
`scheduler`       starts attempts for due deliveries concurrently, and applies the results
`attempts`        makes one attempt: body, signature, POST request and verdict
`payloads`        renders bodies: thin, or fat with the object, combined from several events
`recorder`        records the results of all endpoints, many in one transaction
`secrets`         signs requests, and stores previous secrets so that rotations can be undone
"""
