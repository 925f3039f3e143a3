"""Agreements between the service and organisations: published versions, acceptances, and the standing of an organisation."""
