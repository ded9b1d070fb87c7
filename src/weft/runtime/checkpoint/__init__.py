"""What is on disk: `storage` puts files in place whole, `objects` is object storage, `lease`
says who may write (there: `lease_object`), `identity` whose checkpoint it is, `log` holds the steps of a
stepper, `commits` what a step leaves in it.
`spark_checkpoint` looks at Spark's own checkpoint of a stream, which is never written here.
`failpoints` are the places at which tests crash a run.

Nothing here runs a step: `protocol/` does, and knows what the files mean to a run.
"""
