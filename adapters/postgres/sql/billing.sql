-- list_open_invoices --
SELECT {invoice} FROM invoices
WHERE org = %(org)s AND livemode = %(livemode)s
    AND status = 'open'
ORDER BY created_at DESC, id DESC LIMIT 100

-- find_invoices --
SELECT {invoice} FROM invoices WHERE org = %(org)s AND livemode = %(livemode)s AND provider_id = ANY(%(provider_ids)s)

-- find_purchase --
SELECT id FROM credit_purchases WHERE org = %(org)s AND livemode = %(livemode)s AND request_key = %(request_key)s

-- record_plan --
INSERT INTO billed_months (org, livemode, month, plan) VALUES (%(org)s, %(livemode)s, %(month)s, %(plan)s)
ON CONFLICT DO NOTHING

-- list_plans --
SELECT plan FROM billed_months WHERE org = %(org)s AND livemode = %(livemode)s AND month = %(month)s ORDER BY plan

-- set_entitlement --
UPDATE organisations SET plan = %(plan)s, bills_overage = %(bills_overage)s WHERE id = %(org)s

-- list_prices --
SELECT plan, currency, monthly, amounts, effective_at FROM plan_prices ORDER BY plan, currency, effective_at

-- find_tenant --
SELECT a.org, a.livemode FROM here.billing_accounts AS a WHERE a.customer = %(customer)s

-- list_accounts --
SELECT a.org, a.livemode FROM here.billing_accounts AS a
WHERE a.customer IS NOT NULL AND (a.reconciled_at IS NULL OR a.reconciled_at < %(reconciled_before)s)
ORDER BY a.reconciled_at NULLS FIRST LIMIT 1000

-- list_ended_grace --
SELECT a.org, a.livemode FROM here.billing_accounts AS a WHERE a.grace_ends_at <= %(now)s AND a.granted_plan IS NOT NULL

-- list_unclosed --
SELECT DISTINCT b.org, b.livemode, b.month FROM here.billed_months AS b
WHERE b.month < %(month)s AND NOT EXISTS (
    SELECT FROM here.usage_charges AS c
    WHERE c.org = b.org AND c.livemode = b.livemode AND c.id = to_char(b.month, 'YYYY-MM'))
ORDER BY b.month LIMIT 1000

-- list_automatic_purchases --
SELECT s.org, s.livemode, s.top_up_credits
FROM here.credit_settings AS s JOIN here.credit_ledgers AS l ON l.org = s.org AND l.livemode = s.livemode
WHERE s.livemode AND s.top_up_credits IS NOT NULL AND l.available + l.reserved < s.low_balance_micros AND NOT EXISTS (
    SELECT FROM here.credit_purchases AS p
    WHERE p.org = s.org AND p.livemode = s.livemode AND p.request_key = %(request_key)s AND p.status <> 'requires_payment')
LIMIT 1000

-- list_arrears --
SELECT a.org, a.livemode, {account} FROM here.billing_accounts AS a WHERE a.grace_ends_at IS NOT NULL ORDER BY a.grace_ends_at

-- add_price --
INSERT INTO plan_prices (plan, currency, effective_at, monthly, amounts)
VALUES (%(plan)s, %(currency)s, %(effective_at)s, %(monthly)s, %(amounts)s)
ON CONFLICT (plan, currency, effective_at) DO UPDATE SET monthly = excluded.monthly, amounts = excluded.amounts
