"""Calibrators of P(y = 1) for classifiers of two classes."""
