"""The page *Which should I use?*."""
