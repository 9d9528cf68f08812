"""Experiments: their validation, the time loop, histories, links and presets.

Plug-ins are loaded first.
"""

from . import plugins

plugins.load()
