"""Alias of `bandits.results.decision.why`, the name of earlier versions."""

from .results.decision.why import why as why
