"""Images in, images out: views that a calibrator looks at, and shifts that images may undergo."""
