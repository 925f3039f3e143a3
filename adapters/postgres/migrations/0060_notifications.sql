-- Rules of people and organisations about notifications, what was found since the last notification, and the notifications.

-- `address` is encrypted. `position` is the end of the events in the log that were examined. `state` is what was last seen of each source.
CREATE TABLE notification_rules (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    person text COLLATE "C" NOT NULL,
    name text NOT NULL,
    kind text COLLATE "C" NOT NULL,
    threshold integer NOT NULL,
    prices text[] COLLATE "C" NOT NULL,
    sources text[] COLLATE "C" NOT NULL,
    brands text[] NOT NULL,
    categories text[] COLLATE "C" NOT NULL,
    channel text COLLATE "C" NOT NULL,
    address bytea,
    address_hint text NOT NULL,
    frequency text COLLATE "C" NOT NULL,
    send_at integer NOT NULL,
    weekday integer NOT NULL,
    time_zone text NOT NULL,
    quiet_from integer,
    quiet_until integer,
    language text COLLATE "C" NOT NULL,
    enabled boolean NOT NULL,
    stopped_for text COLLATE "C",
    position bigint NOT NULL,
    state jsonb NOT NULL,
    checked_at timestamptz NOT NULL,
    due_at timestamptz,
    has_overflow boolean NOT NULL,
    notified_at timestamptz,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('notification_rules');
CREATE INDEX notification_rules_enabled ON notification_rules (org, livemode, position) WHERE enabled;
CREATE INDEX notification_rules_due ON notification_rules (due_at) WHERE enabled AND due_at IS NOT NULL;

-- The first old and the last new values of each subject since the rule's last notification.
CREATE TABLE notification_findings (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    rule text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    product text COLLATE "C",
    source text COLLATE "C",
    old jsonb NOT NULL,
    new jsonb NOT NULL,
    found_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, rule, subject)
);
SELECT protect_tenant_table('notification_findings');

CREATE TABLE notifications (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    rule text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    total integer NOT NULL,
    is_total_exact boolean NOT NULL,
    items jsonb NOT NULL,
    attempts integer NOT NULL,
    failure text,
    created_at timestamptz NOT NULL,
    next_attempt_at timestamptz,
    sent_at timestamptz,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('notifications');
CREATE INDEX notifications_rule ON notifications (org, livemode, rule, id);
CREATE INDEX notifications_created ON notifications (created_at);
