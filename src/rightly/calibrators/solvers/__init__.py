"""Solvers under the calibrators. They know arrays, never Predictions."""
