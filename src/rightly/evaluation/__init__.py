"""From calibrators and test sets to numbers, and what these numbers select."""
