"""Plans of a running stream: when a new version is made, from which measurements, and from which
time on the windows of a new query are complete."""
