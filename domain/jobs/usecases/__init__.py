"""What runs: jobs taken up, done and recorded, and what the one scheduler that leads does now and then.

`worker`    takes up: `Worker.run(stop)` drains the lanes that its source names, several at a time (`Lanes`)
`polling`   a source of lanes: the database; the queue is another (adapters/arq), `Failover` uses one for the other
`draining`  does one lane's jobs, one by one: its handler does each and records it in the transaction of its effects;
            what failed is put off, leases are kept
`relay`     hands due lanes from the database to the queue
`ticks`     what is to be done every so often
`leader`    `Leader.run(stop)` has relay and ticks run while this process leads
"""
