"""Diagnostic rules by subject; each returns a `Finding`."""
