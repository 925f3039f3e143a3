"""Program that follows changes and prints their IDs until it is killed."""

import sys

from joinery_client import Joinery

with Joinery() as client, open(sys.argv[2], "a") as file:
    for event in client.changes.follow(cursor_file=sys.argv[1], wait=2, limit=7):
        file.write(event["id"] + "\n")
        file.flush()
