"""What weft is compared with, on the same rows: `plain_spark`, `flink` (with `flink_job`, which it
runs), `floor`, one scan and a count, and `in_full`, every join query over all data. What is
measured, and how, is in `bench` and `bench.measuring`.
"""
