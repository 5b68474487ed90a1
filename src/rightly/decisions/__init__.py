"""Decisions on a confidence: when to act on a prediction and when to abstain."""
