"""OpenTelemetry: spans and metrics to a collector by OTLP over HTTP. Imported only if JOINERY_OTLP_URL is set."""
