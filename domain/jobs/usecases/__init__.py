"""What runs: lanes of jobs drained by workers, woken by the relay, and what the leading scheduler does now and then."""
