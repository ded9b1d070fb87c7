"""What weft is compared with, on the same rows: `plain_spark`, `flink` (with the job that it runs), and
`floor`, one scan and a count. What is measured, and how, is in `bench` and `bench.measuring`.
"""
