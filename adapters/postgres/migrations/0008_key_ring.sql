-- The keys of the deployment that are no part of its secret, sealed under the one in force: one row.

CREATE TABLE key_ring (
    id boolean PRIMARY KEY DEFAULT true CHECK (id),
    sealed bytea NOT NULL,
    changed_at timestamptz NOT NULL
);

CREATE INDEX webhook_endpoints_rotation ON webhook_endpoints (rotation_expires_at) WHERE rotation_expires_at IS NOT NULL;
