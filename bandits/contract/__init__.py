"""The contract: what every agent and every simulator must fulfil, as functions that raise
`ContractError`.

The tests run them on the built-in kinds, ``python -m bandits check FILE.py`` on the kinds of a
plug-in."""
