"""Read tables of users: bytes in, columns out, in which a cell is text until its reader knows
better.
"""
