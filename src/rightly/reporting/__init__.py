"""Three renderers of the same results: terminal, HTML page, figures."""
