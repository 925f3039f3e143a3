-- Sources that follow catalogues of other organisations; the scheduler lists those of all tenants every two seconds.
CREATE INDEX sources_followed ON sources ((config ->> 'catalogue'), livemode) WHERE connector = 'network';
