"""Version of the connector SDK, read by its distribution and by the plugin host.

The first number is `spec.API`. The second increases with additions, the third with corrections.
"""

VERSION = "2.0.0"
