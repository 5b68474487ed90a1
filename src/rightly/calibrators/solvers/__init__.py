"""Numerical solvers of the calibrators: they know arrays, not predictions."""
