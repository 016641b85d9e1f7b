"""The programs of core.py: GROUPS of each module, name -> (setup, lines)."""
