"""What `deploy/` ships: image, locks, manifests, proxies."""
