-- Saved views of the product list, the view with which a person's list starts, and actions on many products.

CREATE TABLE saved_views (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    person text COLLATE "C" NOT NULL,
    name text NOT NULL,
    query text NOT NULL,
    is_shared boolean NOT NULL,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('saved_views');
CREATE INDEX saved_views_person ON saved_views (org, livemode, person) WHERE NOT is_shared;
CREATE INDEX saved_views_shared ON saved_views (org, livemode) WHERE is_shared;

-- `id` is the person
CREATE TABLE list_preferences (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    default_view text COLLATE "C",
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('list_preferences');

-- `products` are removed from the row when the action has ended; `position` is the number of products that are done
CREATE TABLE bulk_actions (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    person text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    products text[] COLLATE "C" NOT NULL,
    total integer NOT NULL,
    position integer NOT NULL,
    changed integer NOT NULL,
    status text NOT NULL,
    error text,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('bulk_actions');
