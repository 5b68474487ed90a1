"""Measurements of Rightly: the paper's experiments, speed, and its own calibrator."""
