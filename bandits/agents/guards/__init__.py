"""Guards: what stands between an agent and the users, each one a wrapper around an agent or another
guard.
"""
