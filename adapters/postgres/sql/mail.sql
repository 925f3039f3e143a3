-- address --
SELECT s.org, s.livemode, s.id FROM here.sources AS s WHERE s.inbound_address = %(address)s
