"""OpenTelemetry: spans and figures to a collector by OTLP over HTTP. Imported only where JOINERY_OTLP_URL is set."""
