"""Decisions on a confidence: when to act on a prediction and when to abstain."""

from rightly.decisions.accuracy_estimates import atc as atc
from rightly.decisions.accuracy_estimates import average_confidence as average_confidence
from rightly.decisions.accuracy_estimates import doc as doc
from rightly.decisions.costs import measure_cost as measure_cost
from rightly.decisions.decision import Decision as Decision
from rightly.decisions.guarantee import exact_interval as exact_interval
