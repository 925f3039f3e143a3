-- Refusals and errors are found among all requests.

CREATE INDEX request_logs_failed ON request_logs (org, livemode, position) WHERE status >= 400;
