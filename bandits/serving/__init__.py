"""The production loop: a service that decides, its event log, registry, trainer and rollout."""
