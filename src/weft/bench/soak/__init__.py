"""``weft bench soak``: does a run that goes on for long grow?

``scenario`` is the run, ``resources`` what is counted while it runs, ``trend`` the verdict over what
was counted, ``benchmark`` the command. It has no peer and no rate, and so no part in the tests'
time: run it for minutes after a change of the protocol, for hours before a release.
"""
