-- Vendor profiles, which every organisation of the mode reads, and claims to them. On a cluster they are on every node: a claim concerns
-- an organisation and a profile that another organisation may hold. Tenants read them; stores write them as the owner, in named statements.
CREATE TABLE vendor_profiles (
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    name text NOT NULL,
    slug text COLLATE "C" NOT NULL,
    brands text[] NOT NULL,
    website_domain text COLLATE "C",
    status text NOT NULL,
    verified boolean NOT NULL,
    verified_at timestamptz,
    catalogue text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    holder text COLLATE "C" REFERENCES organisations (id),
    is_gathered boolean NOT NULL,
    service_catalogue text COLLATE "C" NOT NULL,
    merged_into text COLLATE "C",
    PRIMARY KEY (livemode, id),
    CHECK (holder IS NOT NULL OR NOT verified)
);
CREATE UNIQUE INDEX vendor_profiles_slug ON vendor_profiles (livemode, slug);
CREATE UNIQUE INDEX vendor_profiles_holder ON vendor_profiles (livemode, holder) WHERE holder IS NOT NULL AND merged_into IS NULL;
CREATE INDEX vendor_profiles_status ON vendor_profiles (livemode, status, id) WHERE merged_into IS NULL;
CREATE INDEX vendor_profiles_verified ON vendor_profiles (livemode, verified, id) WHERE merged_into IS NULL;

-- Search keys of profiles (domain/brand/names.py). A brand, `b:…`, has one profile.
CREATE TABLE vendor_profile_terms (
    livemode boolean NOT NULL,
    term text COLLATE "C" NOT NULL,
    profile text COLLATE "C" NOT NULL,
    PRIMARY KEY (livemode, term, profile)
);
CREATE UNIQUE INDEX vendor_profile_terms_brand ON vendor_profile_terms (livemode, term) WHERE term ^@ 'b:';

CREATE TABLE brand_claims (
    org text COLLATE "C" NOT NULL REFERENCES organisations (id),
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    profile text COLLATE "C" NOT NULL,
    status text NOT NULL,
    evidence jsonb NOT NULL,
    decision jsonb,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    withdrawn_at timestamptz,
    checked_at timestamptz,
    PRIMARY KEY (org, livemode, id)
);
CREATE UNIQUE INDEX brand_claims_pending ON brand_claims (livemode, profile, org) WHERE status = 'pending';
CREATE INDEX brand_claims_newest ON brand_claims (id);
CREATE INDEX brand_claims_checked ON brand_claims (checked_at) WHERE status IN ('pending', 'approved');
SELECT protect_tenant_table('brand_claims');
ALTER TABLE brand_claims ALTER COLUMN org RESET (n_distinct, n_distinct_inherited);  -- spans tenants: see expect_large_tenants

CREATE TABLE claim_invitations (
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    profile text COLLATE "C" NOT NULL,
    email text NOT NULL,
    digest bytea NOT NULL UNIQUE,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    claim text COLLATE "C",
    revoked_at timestamptz,
    PRIMARY KEY (livemode, id)
);

DO $$
DECLARE
    shared_table regclass;
BEGIN
    FOREACH shared_table IN ARRAY '{vendor_profiles, vendor_profile_terms, claim_invitations}'::regclass[] LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', shared_table);
        EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', shared_table);
        EXECUTE format('CREATE POLICY system ON %s TO joinery_system USING (true)', shared_table);
        EXECUTE format(
            'CREATE POLICY owner ON %s TO %I USING (true)',
            shared_table, (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = shared_table)
        );
    END LOOP;
END
$$;
CREATE POLICY mode ON vendor_profiles FOR SELECT TO joinery_app
    USING (livemode = (current_setting('joinery.livemode') = 't'));
CREATE POLICY mode ON vendor_profile_terms FOR SELECT TO joinery_app
    USING (livemode = (current_setting('joinery.livemode') = 't'));
