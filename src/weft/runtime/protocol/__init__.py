"""One protocol for every engine (DESIGN sections 4.2 and 4.5).

`stepper` runs the parts of a step in their order, `engine` is what it asks of an engine, `step`
what is under way, `finishing` its second half beside the next step. `leader` and `follower` say
what the next step is, `preparing` is an engine in front of another one, `publishing` what a stream writes for followers, `orphans` removes what
nothing names. Nothing in this room knows what windows, joins or sinks are; what is on disk is
`checkpoint/`.
"""
