-- Billing accounts with what the payment provider states, invoices, purchases of credit, and charges for usage.

ALTER TABLE organisations ADD COLUMN bills_overage boolean NOT NULL DEFAULT false;

CREATE TABLE billing_accounts (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    customer text COLLATE "C",
    currency text,
    details jsonb NOT NULL,
    card jsonb,
    subscription jsonb,
    granted_plan text,
    grace_ends_at timestamptz,
    reads bigint NOT NULL,
    applied_read bigint NOT NULL,
    busy_until timestamptz,
    reconciled_at timestamptz,
    version integer NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('billing_accounts');
CREATE INDEX billing_accounts_customer ON billing_accounts (customer);
CREATE INDEX billing_accounts_grace ON billing_accounts (grace_ends_at) WHERE grace_ends_at IS NOT NULL;

CREATE TABLE invoices (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    provider_id text COLLATE "C" NOT NULL,
    number text,
    status text NOT NULL,
    currency text NOT NULL,
    total bigint NOT NULL,
    tax bigint NOT NULL,
    amount_due bigint NOT NULL,
    refunded bigint NOT NULL,
    lines jsonb NOT NULL,
    cause text COLLATE "C",
    subscription text COLLATE "C",
    has_failed boolean NOT NULL,
    hosted_invoice_url text,
    invoice_pdf text,
    created_at timestamptz NOT NULL,
    due_at timestamptz,
    paid_at timestamptz,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('invoices');
CREATE UNIQUE INDEX invoices_provider_id ON invoices (org, livemode, provider_id);
CREATE INDEX invoices_open ON invoices (org, livemode) WHERE status = 'open';

CREATE TABLE credit_purchases (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    status text NOT NULL,
    credits bigint NOT NULL,
    request_key text COLLATE "C" NOT NULL,
    amount bigint NOT NULL,
    tax bigint NOT NULL,
    total bigint NOT NULL,
    refunded bigint NOT NULL,
    client_secret text,
    invoice jsonb,
    created_at timestamptz NOT NULL,
    paid_at timestamptz,
    expires_at timestamptz,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('credit_purchases');
CREATE UNIQUE INDEX credit_purchases_request_key ON credit_purchases (org, livemode, request_key);

-- Plans that an organisation had by subscription in a month, with the days from and until which its usage is charged.
CREATE TABLE billed_months (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    month date NOT NULL,
    plan text NOT NULL,
    began_on date NOT NULL,
    ended_on date,
    PRIMARY KEY (org, livemode, month, plan, began_on)
);
SELECT protect_tenant_table('billed_months');

CREATE TABLE usage_charges (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    currency text NOT NULL,
    total bigint NOT NULL,
    lines jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('usage_charges');

-- Prices of plans, which the operator sets; they replace the price that a plan itself states, or add a currency.
CREATE TABLE plan_prices (
    plan text NOT NULL,
    currency text NOT NULL,
    effective_at timestamptz NOT NULL,
    monthly bigint NOT NULL,
    amounts jsonb NOT NULL,
    PRIMARY KEY (plan, currency, effective_at)
);

