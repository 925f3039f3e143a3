"""Use cases of the deployment's secrets.

`keyring`: loading of the key ring in each process, and selection of the active secret
`reencryption`: activation of the newest secret, and re-encryption of values by the scheduler
`status`: number of values that are encrypted with each secret, and reasons why a secret cannot be removed yet
"""
