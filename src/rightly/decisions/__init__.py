"""Decisions on a confidence: when to act on a prediction and when to abstain."""

from rightly.decisions.costs import measure_cost as measure_cost
from rightly.decisions.decision import Decision as Decision
from rightly.decisions.guarantee import exact_interval as exact_interval
