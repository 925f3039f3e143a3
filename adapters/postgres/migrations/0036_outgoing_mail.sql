-- Mail to people, which is nobody's tenant. The text is sealed, for links in it let somebody in, and emptied once it was sent.

CREATE TABLE outgoing_mail (
    id text COLLATE "C" PRIMARY KEY,
    "to" text NOT NULL,
    subject text NOT NULL,
    purpose text NOT NULL,
    sealed bytea NOT NULL,
    created_at timestamptz NOT NULL,
    next_at timestamptz,
    attempts integer NOT NULL,
    sent_at timestamptz,
    failure text NOT NULL
);
CREATE INDEX outgoing_mail_next ON outgoing_mail (next_at) WHERE next_at IS NOT NULL;
