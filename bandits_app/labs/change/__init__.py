"""The page Shock lab."""
