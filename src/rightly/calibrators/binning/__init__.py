"""Calibrators that read confidence from a table: bins, and isotonic regressions."""
