"""Pictures of an evaluation: what each panel shows, the figure of all panels, a page of them.

A panel is plain data. Only `figure.py` draws, and imports matplotlib.
"""
