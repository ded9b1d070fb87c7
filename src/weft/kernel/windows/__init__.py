"""Due windows: `program` is a plan made ready, `due` says which windows end now, `weave` computes
them from open fragments (a `view` of them) by `positions`, `lower` and `scalar` turn partials
into values, `results` into rows; `intercede` is level 2. Where fragments come from is in
`kernel.fragments`.
"""
