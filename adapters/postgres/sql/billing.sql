-- find_overdue_invoice --
SELECT {invoice} FROM invoices
WHERE org = %(org)s AND livemode = %(livemode)s AND status = 'open' AND has_failed AND (
    %(subscription)s::text IS NULL AND (cause IS NULL OR cause LIKE 'usage-%%')
    OR subscription = %(subscription)s::text
    OR cause LIKE 'usage-%%' AND created_at >= %(started_at)s::timestamptz)
ORDER BY created_at LIMIT 1

-- void_open_invoices --
UPDATE invoices SET status = 'void', amount_due = 0 WHERE org = %(org)s AND livemode = %(livemode)s AND status = 'open'

-- find_invoices --
SELECT {invoice} FROM invoices WHERE org = %(org)s AND livemode = %(livemode)s AND provider_id = ANY(%(provider_ids)s)

-- find_purchase --
SELECT id FROM credit_purchases WHERE org = %(org)s AND livemode = %(livemode)s AND request_key = %(request_key)s

-- begin_plan --
INSERT INTO billed_months (org, livemode, month, plan, began_on)
SELECT %(org)s, %(livemode)s, %(month)s, %(plan)s, %(began_on)s::date
WHERE NOT EXISTS (
    SELECT FROM billed_months
    WHERE org = %(org)s AND livemode = %(livemode)s AND month = %(month)s AND plan = %(plan)s AND ended_on IS NULL)
ON CONFLICT (org, livemode, month, plan, began_on) DO UPDATE SET ended_on = NULL

-- end_plans --
UPDATE billed_months SET ended_on = %(ended_on)s
WHERE org = %(org)s AND livemode = %(livemode)s AND month = %(month)s AND ended_on IS NULL

-- list_plans --
SELECT plan, began_on, ended_on FROM billed_months WHERE org = %(org)s AND livemode = %(livemode)s AND month = %(month)s ORDER BY plan, began_on

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
SELECT s.org, s.livemode, s.top_up_credits, coalesce((
    SELECT p.request_key FROM here.credit_purchases AS p
    WHERE p.org = s.org AND p.livemode = s.livemode AND p.kind = 'automatic' AND p.status = 'requires_payment'
    ORDER BY p.created_at LIMIT 1
), %(request_key)s)
FROM here.credit_settings AS s JOIN here.credit_ledgers AS l ON l.org = s.org AND l.livemode = s.livemode
LEFT JOIN here.billing_accounts AS a ON a.org = s.org AND a.livemode = s.livemode
WHERE s.livemode AND s.top_up_credits IS NOT NULL AND coalesce(a.currency, %(currency)s) = %(currency)s AND l.available + l.reserved < s.low_balance_micros AND NOT EXISTS (
    SELECT FROM here.credit_purchases AS p
    WHERE p.org = s.org AND p.livemode = s.livemode AND p.request_key = %(request_key)s AND p.status <> 'requires_payment')
LIMIT 1000

-- list_arrears --
SELECT a.org, a.livemode, {account} FROM here.billing_accounts AS a WHERE a.grace_ends_at IS NOT NULL ORDER BY a.grace_ends_at

-- add_price --
INSERT INTO plan_prices (plan, currency, effective_at, monthly, amounts)
VALUES (%(plan)s, %(currency)s, %(effective_at)s, %(monthly)s, %(amounts)s)
ON CONFLICT (plan, currency, effective_at) DO UPDATE SET monthly = excluded.monthly, amounts = excluded.amounts
