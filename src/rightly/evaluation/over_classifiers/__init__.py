"""Methods over several classifiers: fits that are kept, values that all have, tests of those."""
