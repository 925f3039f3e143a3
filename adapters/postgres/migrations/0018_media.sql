-- Images that products name: where they are fetched, which products use them, and what is stored of them.

CREATE TABLE images (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    content text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    bytes bigint NOT NULL,
    width integer NOT NULL,
    height integer NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
CREATE UNIQUE INDEX images_content ON images (org, livemode, content);

CREATE TABLE image_addresses (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    address text COLLATE "C" NOT NULL,
    url text NOT NULL,
    host text COLLATE "C" NOT NULL,
    run text COLLATE "C" NOT NULL,
    tries integer NOT NULL DEFAULT 0,
    image text COLLATE "C",
    etag text,
    last_modified text,
    failure text,
    due_at timestamptz,
    checked_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, address)
) WITH (fillfactor = 80);
CREATE INDEX image_addresses_due ON image_addresses (org, livemode, host, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX image_addresses_image ON image_addresses (org, livemode, image) WHERE image IS NOT NULL;

CREATE TABLE image_uses (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    product text COLLATE "C" NOT NULL,
    address text COLLATE "C" NOT NULL,
    stale boolean NOT NULL,
    PRIMARY KEY (org, livemode, product, address)
) WITH (fillfactor = 80);
CREATE INDEX image_uses_address ON image_uses (org, livemode, address, product);
CREATE INDEX image_uses_stale ON image_uses (org, livemode, product) WHERE stale;

SELECT protect_tenant_table('images');
SELECT protect_tenant_table('image_addresses');
SELECT protect_tenant_table('image_uses');
