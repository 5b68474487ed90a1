"""Calibrators that scale logits by class or by a function, and most of which move classes."""
