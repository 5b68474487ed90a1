"""Rightly's own calibrator (correctness_logistic) against its targets."""
