"""What weft is compared with: plain Spark, Flink, and the floor (one scan and a count)."""
