"""Release of the kit, read by its distribution and by the plugin host.

The first number is `spec.API`. The second increases with additions, the third with corrections.
"""

VERSION = "1.1.0"
