"""Exported files at work: what a deployed classifier and its calibrator say about images."""
