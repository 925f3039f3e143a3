-- What is used of each meter: entries in the transaction of what they count, folded into a row for each day.

-- `subject` is what was done: entries of one subject and day add up. `reserved` is the most that it may come to, until it ends.
CREATE TABLE usage_entries (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    meter text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    day date NOT NULL,
    amount bigint NOT NULL,
    reserved bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (org, livemode, meter, subject, day)
);
SELECT protect_tenant_table('usage_entries');

CREATE TABLE usage_days (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    meter text COLLATE "C" NOT NULL,
    day date NOT NULL,
    amount bigint NOT NULL,
    PRIMARY KEY (org, livemode, meter, day)
);
SELECT protect_tenant_table('usage_days');

-- What was told of a month, once. `held_back`: deliveries wait until another month or plan begins.
CREATE TABLE usage_thresholds (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    meter text COLLATE "C" NOT NULL,
    month date NOT NULL,
    percent smallint NOT NULL,
    included bigint NOT NULL,
    reached_at timestamptz NOT NULL,
    held_back boolean NOT NULL DEFAULT false,
    PRIMARY KEY (org, livemode, meter, month, percent)
);
SELECT protect_tenant_table('usage_thresholds');
