"""A real Kafka broker, from its jars."""
