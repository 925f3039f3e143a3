"""Execution of jobs by workers, and scheduled tasks of the leading process.

A lane is a group of jobs that run one after the other.

`worker`          executes the jobs of several lanes concurrently, and switches to the database if the queue is unavailable
`polling`         finds lanes with due jobs in the database; the queue (adapters/arq) is the other source of lanes
`lane_processor` executes the jobs of one lane, renews their leases and reschedules failed ones
`job_observer`    records metrics and traces of attempts
`relay`           finds lanes with due jobs in the database and adds them to the queue
`ticks`           runs the scheduled tasks and the relay while this process leads
"""
