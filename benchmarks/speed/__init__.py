"""Time, memory and size, as ratios inside one run because the machines are shared."""
