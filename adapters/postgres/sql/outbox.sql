-- add --
INSERT INTO outgoing_mail (id, "to", subject, purpose, sealed, created_at, next_at, attempts, sent_at, failure)
VALUES (%(id)s, %(to)s, %(subject)s, %(purpose)s, %(sealed)s, %(created_at)s, %(next_at)s, %(attempts)s, %(sent_at)s, %(failure)s)

-- latest --
SELECT id, "to", subject, purpose, sealed, created_at, next_at, attempts, sent_at, failure FROM outgoing_mail
ORDER BY id DESC LIMIT %(limit)s

-- claim --
UPDATE outgoing_mail AS m SET next_at = %(until)s, attempts = m.attempts + 1
FROM (
    SELECT id FROM outgoing_mail WHERE next_at <= %(now)s AND created_at >= %(not_before)s
    ORDER BY next_at, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) AS due
WHERE m.id = due.id
RETURNING m.id, m."to", m.subject, m.purpose, m.sealed, m.created_at, m.next_at, m.attempts, m.sent_at, m.failure

-- sent --
UPDATE outgoing_mail SET sent_at = %(now)s, next_at = NULL, failure = '', sealed = '' WHERE id = %(id)s

-- failed --
UPDATE outgoing_mail SET failure = %(failure)s, next_at = %(next_at)s WHERE id = %(id)s

-- forget --
DELETE FROM outgoing_mail WHERE created_at < %(before)s
