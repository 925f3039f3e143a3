"""What runs: which secret is in force, and sealing anew what stands under another.

`keyring`    each process: reads the key ring, and hears when another secret has come into force
`resealing`  the scheduler: brings the current secret into force, and seals values anew
`status`     operators: how much stands under which secret, and what keeps one from being retired
"""
