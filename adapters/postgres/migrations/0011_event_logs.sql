-- A log for each organisation and mode: its row, beside its events, is raised with each that is appended, so that positions
-- stand in the order of commits. `epoch` tells one history of a log from another; it began behind the position `began`.
-- Events up to `low` are kept no longer. `publishes` tells that others may hear of some of its events.

CREATE TABLE event_logs (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    epoch integer NOT NULL,
    last bigint NOT NULL,
    time timestamptz,
    began bigint NOT NULL DEFAULT 0,
    low bigint NOT NULL DEFAULT 0,
    publishes boolean NOT NULL DEFAULT false,
    PRIMARY KEY (org, livemode)
) WITH (fillfactor = 20);
CREATE INDEX event_logs_publishing ON event_logs (org, livemode) WHERE publishes;
SELECT protect_tenant_table('event_logs');

-- Logs go on behind every position that was given out while one sequence numbered the events of all.
INSERT INTO event_logs (org, livemode, epoch, last, low, publishes)
SELECT o.id, mode.livemode, 1 + floor(random() * 2147483646)::integer, numbered.last, kept.position,
    (o.id, mode.livemode) IN (SELECT e.org, e.livemode FROM events e WHERE e.network)
FROM organisations o
CROSS JOIN (VALUES (true), (false)) AS mode (livemode)
CROSS JOIN (SELECT last_value - (NOT is_called)::integer AS last FROM event_position) AS numbered
CROSS JOIN event_low_watermark AS kept
WHERE numbered.last > 0;
DROP TABLE event_low_watermark;
DROP SEQUENCE event_position;

-- The network's logs hold copies of published events; `owner` is whose they are.
ALTER TABLE events ADD COLUMN owner text COLLATE "C";
DROP INDEX events_network;
CREATE INDEX events_network ON events (org, livemode, position) WHERE network;

-- In which blocks of 512 positions of a log events of a type, or of a catalogue, may be found: a row for each of hundreds of
-- events, where an index on events would have each event pay.
CREATE TABLE event_log_terms (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    term text COLLATE "C" NOT NULL,
    block bigint NOT NULL,
    PRIMARY KEY (org, livemode, term, block)
);
SELECT protect_tenant_table('event_log_terms');
INSERT INTO event_log_terms (org, livemode, term, block)
SELECT org, livemode, type, (position - 1) / 512 FROM events
UNION SELECT org, livemode, catalogue, (position - 1) / 512 FROM events WHERE catalogue IS NOT NULL;

-- How far each publisher's events have been copied: beside the network's logs, whose organisation is `network`.
CREATE TABLE network_checkpoints (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    owner text COLLATE "C" NOT NULL,
    epoch integer NOT NULL,
    position bigint NOT NULL,
    PRIMARY KEY (org, livemode, owner)
) WITH (fillfactor = 50);
SELECT protect_tenant_table('network_checkpoints');
INSERT INTO network_checkpoints (org, livemode, owner, epoch, position)
SELECT 'network', livemode, org, epoch, last FROM event_logs WHERE publishes;  -- what was told before is not told again

ALTER TABLE webhook_endpoints
    ADD COLUMN network_epoch integer NOT NULL DEFAULT 0, ADD COLUMN network_checkpoint bigint NOT NULL DEFAULT 0;
ALTER TABLE webhook_deliveries ADD COLUMN network boolean NOT NULL DEFAULT false;

-- Which server this is, and on which timeline: a restore, a copy or a promotion makes it another one, and logs begin an epoch.
CREATE TABLE log_server (
    id boolean PRIMARY KEY DEFAULT true CHECK (id),
    identity text COLLATE "C" NOT NULL
);
