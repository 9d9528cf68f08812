"""Bandit Playground: a laboratory for contextual bandits."""
