"""Which release of the kit this is: the only place, read by its distribution and by the plugin host.

Its first number is `spec.API`. The second rises with what is added, the third with what is put right.
"""

VERSION = "1.1.0"
