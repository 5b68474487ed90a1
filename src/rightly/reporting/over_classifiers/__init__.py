"""Benchmarks for people: tables, tests, figures and files of methods over classifiers."""
