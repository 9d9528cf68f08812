"""Agents that plan for the rest of a visit."""
