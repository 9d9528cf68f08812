"""The page Guard rails."""
