-- When rows and objects were last purged by age: the clock that purges must not have jumped since (docs/operations.md#clocks). One row.

CREATE TABLE purges (
    id boolean PRIMARY KEY DEFAULT true CHECK (id),
    last_at timestamptz NOT NULL
);

INSERT INTO purges (last_at) VALUES (now());
