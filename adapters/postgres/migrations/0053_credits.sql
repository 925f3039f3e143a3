-- Prepaid credit in millionths of a US dollar: per tenant a ledger with lots, entries and reservations (ADR 109).

CREATE TABLE credit_settings (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    low_balance_micros bigint NOT NULL,
    auto_spend boolean NOT NULL,
    monthly_budget_micros bigint,
    top_up_credits integer,
    version integer NOT NULL,
    created_at timestamptz,
    updated_at timestamptz,
    PRIMARY KEY (org, livemode, id)
);
SELECT protect_tenant_table('credit_settings');

-- `spent` is what was spent or reserved in `month`; `entries` is the number of the last entry.
CREATE TABLE credit_ledgers (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    available bigint NOT NULL DEFAULT 0 CHECK (available >= 0),
    reserved bigint NOT NULL DEFAULT 0 CHECK (reserved >= 0),
    month date NOT NULL,
    spent bigint NOT NULL DEFAULT 0,
    entries bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (org, livemode)
) WITH (fillfactor = 50);
SELECT protect_tenant_table('credit_ledgers');

-- `micros` is 0 while only a refund of the lot is known. `refund_total` is what was refunded, `refunded` what could be removed from the lot.
CREATE TABLE credit_lots (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    id text COLLATE "C" NOT NULL,
    reference text COLLATE "C" NOT NULL,
    micros bigint NOT NULL,
    remaining bigint NOT NULL DEFAULT 0 CHECK (remaining >= 0),
    refund_total bigint NOT NULL DEFAULT 0,
    refunded bigint NOT NULL DEFAULT 0,
    expires_at timestamptz NOT NULL,
    announced boolean NOT NULL DEFAULT false,
    expired boolean NOT NULL DEFAULT false,
    PRIMARY KEY (org, livemode, id)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX credit_lots_reference ON credit_lots (org, livemode, reference);
-- `remaining` is not in the condition, so that its changes need no new index entry
CREATE INDEX credit_lots_expiry ON credit_lots (expires_at) WHERE NOT expired;
SELECT protect_tenant_table('credit_lots');

CREATE TABLE credit_entries (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    number bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    amount_micros bigint NOT NULL,
    balance_micros bigint NOT NULL,
    lot text COLLATE "C" NOT NULL,
    reference text COLLATE "C" NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, number)
);
SELECT protect_tenant_table('credit_entries');

-- Reservations; `amounts` were reserved in `lots`. `state` is open, settled, released or expired.
CREATE TABLE credit_reservations (
    org text COLLATE "C" NOT NULL,
    livemode boolean NOT NULL,
    reference text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    lots text[] COLLATE "C" NOT NULL,
    amounts bigint[] NOT NULL,
    month date NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (org, livemode, reference)
) WITH (fillfactor = 70);
CREATE INDEX credit_reservations_open ON credit_reservations (org, livemode, expires_at) WHERE state = 'open';
CREATE INDEX credit_reservations_expiry ON credit_reservations (expires_at);
SELECT protect_tenant_table('credit_reservations');

-- Whether the request was paid with credit instead of the daily budget.
ALTER TABLE model_uses ADD COLUMN prepaid boolean NOT NULL DEFAULT false;

CREATE TABLE credit_rates (
    model text COLLATE "C" NOT NULL,
    input_micros_per_1k bigint NOT NULL,
    output_micros_per_1k bigint NOT NULL,
    effective_at timestamptz NOT NULL,
    PRIMARY KEY (model, effective_at)
);

-- Add an entry to a locked ledger, and its amount to the lot; return the available credit and the number of entries, which the caller stores.
-- The parameters have no row type, because Citus creates no function with such a type on other nodes. What is released to an expired lot
-- expires at once. IDs of entries are that of `seed` with the entry's number in the last four characters.
CREATE FUNCTION public.post_credit(
    tenant_org text, mode boolean, INOUT available bigint, INOUT entry_count bigint, changed_lot text, entry_kind text, amount bigint,
    cause text, seed text, moment timestamptz
) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    lot_reference text;
    is_expired boolean;
BEGIN
    available := available + amount;
    entry_count := entry_count + 1;
    UPDATE public.credit_lots AS l SET remaining = l.remaining + amount
    WHERE l.org = tenant_org AND l.livemode = mode AND l.id = changed_lot
    RETURNING l.reference, l.expires_at <= moment INTO lot_reference, is_expired;
    INSERT INTO public.credit_entries (org, livemode, number, id, kind, amount_micros, balance_micros, lot, reference, at)
    VALUES (
        tenant_org, mode, entry_count, left(seed, -4) || lpad(to_hex(entry_count & 65535), 4, '0'), entry_kind, amount, available,
        changed_lot, cause, moment
    );
    IF entry_kind = 'release' AND is_expired THEN
        SELECT p.available, p.entry_count INTO available, entry_count FROM public.post_credit(
            tenant_org, mode, available, entry_count, changed_lot, 'expiry', -amount, lot_reference, seed, moment
        ) AS p;
    END IF;
END
$$;

-- Apply actions to the tenant's ledger, after those of reservations and lots that have expired. The row of the ledger is locked first, then
-- reservations, then lots. `results` has one number per given action: reserve, purchase and adjustment 1 or 0, settle what was spent, refund
-- what has been removed from the lot. Totals are available and reserved credit.
CREATE FUNCTION public.apply_credit_actions(
    tenant_org text, mode boolean, moment timestamptz, given jsonb, seed text,
    OUT results bigint[], OUT total_before bigint, OUT total_after bigint, OUT low_balance bigint
) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ledger public.credit_ledgers;
    settings public.credit_settings;
    held public.credit_reservations;
    lot public.credit_lots;
    action record;
    rest bigint;
    part bigint;
    result bigint;
    current_month date := date_trunc('month', moment AT TIME ZONE 'UTC');
    is_changed boolean;
BEGIN
    INSERT INTO public.credit_ledgers (org, livemode, month) VALUES (tenant_org, mode, current_month) ON CONFLICT DO NOTHING;
    SELECT l.* INTO ledger FROM public.credit_ledgers AS l WHERE l.org = tenant_org AND l.livemode = mode FOR UPDATE;
    SELECT s.* INTO settings FROM public.credit_settings AS s WHERE s.org = tenant_org AND s.livemode = mode;
    results := '{}';
    total_before := ledger.available + ledger.reserved;
    low_balance := settings.low_balance_micros;
    IF ledger.month < current_month THEN
        ledger.month := current_month;
        ledger.spent := 0;
    END IF;
    FOR action IN SELECT * FROM jsonb_to_recordset(
        coalesce((
            SELECT jsonb_agg(jsonb_build_object('kind', 'expire', 'reference', r.reference)) FROM public.credit_reservations AS r
            WHERE r.org = tenant_org AND r.livemode = mode AND r.state = 'open' AND r.expires_at <= moment
        ), '[]') || coalesce((
            SELECT jsonb_agg(jsonb_build_object('kind', 'expiry', 'reference', l.reference)) FROM public.credit_lots AS l
            WHERE l.org = tenant_org AND l.livemode = mode AND NOT l.expired AND l.expires_at <= moment
        ), '[]') || given
    ) AS a (kind text, reference text, micros bigint, expires_at timestamptz, lot text)
    LOOP
        result := 0;
        rest := 0;
        IF action.kind IN ('reserve', 'settle', 'release', 'expire') THEN
            SELECT r.* INTO held FROM public.credit_reservations AS r
            WHERE r.org = tenant_org AND r.livemode = mode AND r.reference = action.reference FOR UPDATE;
            is_changed := false;
            IF action.kind = 'reserve' THEN
                IF held.state IS NULL OR held.state = 'expired' THEN
                    is_changed := settings.auto_spend AND action.micros <= ledger.available
                        AND ledger.spent + action.micros <= coalesce(settings.monthly_budget_micros, ledger.spent + action.micros);
                    IF is_changed THEN
                        rest := action.micros;
                        held.lots := '{}';
                        held.amounts := '{}';
                        held.month := ledger.month;
                        held.expires_at := action.expires_at;
                    END IF;
                END IF;
                result := (coalesce(is_changed, false) OR coalesce(held.state IN ('open', 'settled'), false))::int;
            ELSIF held.state = 'open' OR held.state = 'expired' AND action.kind = 'settle' THEN
                is_changed := true;
                rest := coalesce(action.micros, 0);
                FOR i IN 1 .. cardinality(held.lots) LOOP
                    part := greatest(held.amounts[i] - rest, 0);
                    IF part > 0 THEN
                        SELECT p.available, p.entry_count INTO ledger.available, ledger.entries FROM public.post_credit(
                            tenant_org, mode, ledger.available, ledger.entries, held.lots[i], 'release', part, action.reference, seed, moment
                        ) AS p;
                    END IF;
                    ledger.reserved := ledger.reserved - held.amounts[i];
                    IF held.month = ledger.month THEN
                        ledger.spent := ledger.spent - part;
                    END IF;
                    held.amounts[i] := held.amounts[i] - part;
                    rest := rest - held.amounts[i];
                END LOOP;
            END IF;
            IF rest > 0 THEN
                FOR lot IN
                    SELECT l.* FROM public.credit_lots AS l
                    WHERE l.org = tenant_org AND l.livemode = mode AND l.remaining > 0 ORDER BY l.expires_at, l.id
                LOOP
                    EXIT WHEN rest = 0;
                    part := least(rest, lot.remaining);
                    SELECT p.available, p.entry_count INTO ledger.available, ledger.entries FROM public.post_credit(
                        tenant_org, mode, ledger.available, ledger.entries, lot.id, 'spend', -part, action.reference, seed, moment
                    ) AS p;
                    ledger.spent := ledger.spent + part;
                    held.lots := held.lots || lot.id;
                    held.amounts := held.amounts || part;
                    rest := rest - part;
                END LOOP;
            END IF;
            IF action.kind = 'settle' THEN
                result := coalesce((SELECT sum(a) FROM unnest(held.amounts) AS a), 0);
            ELSIF action.kind = 'reserve' AND is_changed THEN
                ledger.reserved := ledger.reserved + action.micros;
            END IF;
            IF is_changed THEN
                -- before the statement, because Citus cannot distribute an expression of this form
                held.state := CASE action.kind WHEN 'reserve' THEN 'open' WHEN 'settle' THEN 'settled' WHEN 'release' THEN 'released' ELSE 'expired' END;
                INSERT INTO public.credit_reservations (org, livemode, reference, state, lots, amounts, month, expires_at)
                VALUES (
                    tenant_org, mode, action.reference,
                    held.state,
                    held.lots, held.amounts, held.month, held.expires_at
                )
                ON CONFLICT (org, livemode, reference) DO UPDATE SET
                    state = excluded.state, lots = excluded.lots, amounts = excluded.amounts, month = excluded.month,
                    expires_at = excluded.expires_at;
            END IF;
        ELSE
            IF action.lot IS NOT NULL THEN
                INSERT INTO public.credit_lots (org, livemode, id, reference, micros, expires_at)
                VALUES (tenant_org, mode, action.lot, action.reference, 0, coalesce(action.expires_at, moment)) ON CONFLICT DO NOTHING;
            END IF;
            SELECT l.* INTO lot FROM public.credit_lots AS l
            WHERE l.org = tenant_org AND l.livemode = mode AND l.reference = action.reference FOR UPDATE;
            IF action.kind = 'expiry' THEN
                IF lot.remaining > 0 THEN
                    SELECT p.available, p.entry_count INTO ledger.available, ledger.entries FROM public.post_credit(
                        tenant_org, mode, ledger.available, ledger.entries, lot.id, 'expiry', -lot.remaining, lot.reference, seed, moment
                    ) AS p;
                END IF;
                UPDATE public.credit_lots AS l SET expired = true WHERE l.org = tenant_org AND l.livemode = mode AND l.id = lot.id;
            ELSE
                IF action.kind = 'refund' THEN
                    rest := greatest(action.micros - lot.refund_total, 0);
                    lot.refund_total := lot.refund_total + rest;
                ELSIF lot.micros = 0 THEN
                    lot.micros := action.micros;
                    lot.remaining := action.micros;
                    lot.expires_at := action.expires_at;
                    SELECT p.available, p.entry_count INTO ledger.available, ledger.entries FROM public.post_credit(
                        tenant_org, mode, ledger.available, ledger.entries, lot.id, action.kind, action.micros, lot.reference, seed, moment
                    ) AS p;
                    rest := lot.refund_total;
                    result := 1;
                END IF;
                part := least(rest, lot.remaining);
                IF part > 0 THEN
                    SELECT p.available, p.entry_count INTO ledger.available, ledger.entries FROM public.post_credit(
                        tenant_org, mode, ledger.available, ledger.entries, lot.id, 'refund', -part, lot.reference, seed, moment
                    ) AS p;
                    lot.refunded := lot.refunded + part;
                END IF;
                UPDATE public.credit_lots AS l
                SET micros = lot.micros, refund_total = lot.refund_total, refunded = lot.refunded, expires_at = lot.expires_at, expired = false
                WHERE l.org = tenant_org AND l.livemode = mode AND l.id = lot.id;
                IF action.kind = 'refund' THEN
                    result := lot.refunded;
                END IF;
            END IF;
        END IF;
        IF action.kind NOT IN ('expire', 'expiry') THEN
            results := results || result;
        END IF;
    END LOOP;
    UPDATE public.credit_ledgers AS l
    SET available = ledger.available, reserved = ledger.reserved, month = ledger.month, spent = ledger.spent, entries = ledger.entries
    WHERE l.org = tenant_org AND l.livemode = mode;
    total_after := ledger.available + ledger.reserved;
END
$$;
REVOKE ALL ON FUNCTION post_credit(text, boolean, bigint, bigint, text, text, bigint, text, text, timestamptz) FROM PUBLIC;
REVOKE ALL ON FUNCTION apply_credit_actions(text, boolean, timestamptz, jsonb, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION post_credit(text, boolean, bigint, bigint, text, text, bigint, text, text, timestamptz) TO joinery_app;
GRANT EXECUTE ON FUNCTION apply_credit_actions(text, boolean, timestamptz, jsonb, text) TO joinery_app;
