"""AIOpsLab for Python: the orchestrator that AIOpsLab's agents know, and environments for training.

Install it with pip, or put the directory above this one into PYTHONPATH. The lab itself is the
program ``aiopslab``; where it is, and how it is found, is in :mod:`aiopslab.client`.
"""
