-- Versions of agreements, the same for all organisations and modes; on every node of a cluster.
CREATE TABLE agreements (
    kind text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    id text COLLATE "C" NOT NULL,
    title text NOT NULL,
    text text NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    published_at timestamptz NOT NULL,
    grace_days integer NOT NULL,
    PRIMARY KEY (kind, version)
);

-- What an organisation has accepted, with the evidence; never changed.
CREATE TABLE agreement_acceptances (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    agreement text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    sha256 text COLLATE "C" NOT NULL,
    signer text COLLATE "C" NOT NULL,
    signer_name text NOT NULL,
    signer_title text NOT NULL,
    authority_confirmed boolean NOT NULL,
    method text NOT NULL,
    ip text,
    user_agent text,
    accepted_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
CREATE UNIQUE INDEX agreement_acceptances_version ON agreement_acceptances (org, livemode, kind, version);
SELECT protect_tenant_table('agreement_acceptances');
