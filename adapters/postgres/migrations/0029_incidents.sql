-- Incidents of the service itself: no tenant's.

CREATE TABLE platform_incidents (
    id text COLLATE "C" PRIMARY KEY,
    component text COLLATE "C" NOT NULL,
    state text NOT NULL,
    title text NOT NULL,
    opened_by text NOT NULL,
    updates jsonb NOT NULL,
    opened_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    closed_at timestamptz
);
CREATE INDEX platform_incidents_open ON platform_incidents (id) WHERE closed_at IS NULL;
