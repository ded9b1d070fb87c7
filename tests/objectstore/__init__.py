"""A real server that speaks S3's protocol, from its jars."""
