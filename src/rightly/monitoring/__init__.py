"""A calibrated classifier at work: its stream of predictions, and alarms when that changes.

`stream` keeps its last samples as sums.
"""
