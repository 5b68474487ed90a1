"""Rightly: how likely is each prediction to be right?"""
