"""Figures: one file for each, `style.py` for what they share, `report/` for the HTML page of a run."""
