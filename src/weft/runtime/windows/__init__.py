"""The engine of time windows: from open fragments to results, on the driver or in lanes."""
