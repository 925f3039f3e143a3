-- Processes that are alive, by role: what status checks and alerts go by. Times are the database's.
CREATE TABLE platform_instances (
    instance text COLLATE "C" NOT NULL,
    role text COLLATE "C" NOT NULL,
    answered bigint NOT NULL,
    failed bigint NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (instance, role)
);

-- The newest backup that `joinery backup` finished. One row.
CREATE TABLE platform_backups (
    id boolean PRIMARY KEY DEFAULT true CHECK (id),
    finished_at timestamptz NOT NULL
);

-- What models cost in the last day, over all organisations.
CREATE INDEX model_uses_created ON model_uses (created_at);
