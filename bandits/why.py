"""Alias of `bandits.results.decision`, the name of earlier versions."""

from .results.decision import why as why
