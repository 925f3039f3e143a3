-- Open pairs without conflict by probability, which a person can merge in bulk.
CREATE INDEX match_pairs_certain ON match_pairs (org, livemode, probability DESC, id)
    WHERE status = 'open' AND NOT held AND conflicts = '{}';
