-- add --
INSERT INTO audit_entries (org, livemode, id, actor, action, target, target_id, change, before, after, request_id, created_at)
VALUES (%(org)s, %(livemode)s, %(id)s, %(actor)s, %(action)s, %(target)s, %(target_id)s, %(change)s, %(before)s, %(after)s,
    %(request_id)s, %(created_at)s)
