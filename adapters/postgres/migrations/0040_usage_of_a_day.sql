-- The operators' page asks what everybody used of a meter today: without it every day of every organisation is looked at.
CREATE INDEX usage_days_day ON usage_days (day, meter);
