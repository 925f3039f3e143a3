-- When each person last viewed the changes of the catalogue, and whether the first steps are hidden; `id` is the person.

CREATE TABLE seen_changes (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    since timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    hides_steps boolean NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('seen_changes');
