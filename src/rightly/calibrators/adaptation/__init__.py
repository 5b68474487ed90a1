"""Adapting to an unlabelled batch: how far the level of its confidences tells that it is shifted.

`learning` fits a `Context` on pseudo-batches with known labels (`pseudo_batches`) when a calibrator
is fitted; `Context` applies it. A calibrator's `adapt`, `expected_accuracy` and `Stream` use it.
"""
