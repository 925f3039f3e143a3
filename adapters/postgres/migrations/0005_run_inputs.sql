-- What a run was handed, how its snapshot was come by, how far it is stored and how often it waited: each in its own column.

ALTER TABLE runs ALTER COLUMN input DROP NOT NULL, ADD COLUMN fetched jsonb, ADD COLUMN checkpoint jsonb,
    ADD COLUMN waits integer NOT NULL DEFAULT 0;

-- Row-level security binds a table's owner as well, unless it is a superuser.
SELECT set_config('joinery.org', '*', true);
UPDATE runs SET
    waits = coalesce((input ->> 'waits')::integer, 0),
    fetched = CASE WHEN input ? 'settings' THEN jsonb_build_object('settings', input -> 'settings',
        'whole', coalesce(input -> 'whole', 'true'), 'etag', input -> 'etag', 'last_modified', input -> 'last_modified') END,
    checkpoint = CASE WHEN jsonb_typeof(input -> 'stored') = 'array'
        THEN jsonb_build_object('chunks', input #> '{stored,0}', 'shape', input #> '{stored,1}') END,
    input = CASE
        WHEN input ? 'upload' THEN jsonb_build_object('upload', input -> 'upload', 'key', coalesce((SELECT key FROM uploads u
            WHERE u.org = runs.org AND u.livemode = runs.livemode AND u.id = runs.input ->> 'upload'),
            'uploads/' || (input ->> 'upload')))  -- gone, and so are its bytes
        WHEN input ? 'push' THEN jsonb_build_object('batch', input -> 'batch', 'parts', coalesce(input -> 'parts', '0'),
            'records', coalesce(input -> 'records', '0'), 'open', coalesce(input -> 'open', 'false'),
            'complete', coalesce(input -> 'complete', 'true'))
    END;
SELECT set_config('joinery.org', '', true);
