"""The secret in force, and resealing of values under it.

`keyring`: each process reads the key ring and follows changes of the secret in force

`resealing`: the scheduler brings the current secret into force and reseals values

`status`: operators see how many values each secret seals, and what prevents its retirement
"""
