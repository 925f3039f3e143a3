-- A profile has a search key for its status, so that the directory searches for a status as for a word (ADR 105).
INSERT INTO vendor_profile_terms (livemode, term, profile)
SELECT livemode, 's:' || status || CASE WHEN verified THEN ':verified' ELSE '' END, id FROM vendor_profiles WHERE merged_into IS NULL;
DROP INDEX vendor_profiles_status;
DROP INDEX vendor_profiles_verified;
