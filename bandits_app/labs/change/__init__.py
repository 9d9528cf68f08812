"""The lab Shock lab."""
