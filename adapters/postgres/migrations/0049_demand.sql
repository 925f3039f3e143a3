-- Demand: what retailers' shops count, and what of it vendors may see (ADR 107).

-- IDs of signals, as hashes, by which repeated ones are recognised.
CREATE TABLE demand_signal_ids (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id bytea NOT NULL,
    seen_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
CREATE INDEX demand_signal_ids_expires ON demand_signal_ids (expires_at);
SELECT protect_tenant_table('demand_signal_ids');

-- An organisation's signals by hour, until their day is released. `subject` is a product of `vendor`, or the query of a search miss, which
-- has no vendor.
CREATE TABLE demand_hours (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    hour timestamptz NOT NULL,
    vendor text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    amount bigint NOT NULL,
    PRIMARY KEY (org, livemode, hour, vendor, subject, type)
);
CREATE INDEX demand_hours_day ON demand_hours (hour, vendor, livemode, type);
CREATE INDEX demand_hours_vendor ON demand_hours (vendor) WHERE vendor <> '';
SELECT protect_tenant_table('demand_hours');

-- Released cells of a vendor's day, which never change. The empty product is the rest: all products without a cell of their own; without
-- an amount it was not released.
CREATE TABLE demand_cells (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    product text COLLATE "C" NOT NULL,
    day date NOT NULL,
    type text COLLATE "C" NOT NULL,
    amount bigint,
    organisations integer NOT NULL,
    PRIMARY KEY (org, livemode, product, day, type)
);
CREATE INDEX demand_cells_day ON demand_cells (org, livemode, day, type) INCLUDE (amount, organisations);
SELECT protect_tenant_table('demand_cells');

-- Released cells of search misses, which are the same for all vendors and are on every node of a cluster.
CREATE TABLE demand_queries (
    livemode boolean NOT NULL,
    day date NOT NULL,
    query text COLLATE "C" NOT NULL,
    amount bigint,
    PRIMARY KEY (livemode, day, query)
);
