"""One row of the table of attacks."""


class NotApplicable(Exception):
    """This attack says nothing about this backend; the text says why."""


class Attack:
    """`run(stand, token)` sends it, and may answer what went wrong; what the application executed
    is judged later. `runs`: that the request is genuine and has to be executed once.
    """

    def __init__(self, group, name, run, runs=False, alone=False, once=False):
        self.group = group
        self.name = name
        self.run = run
        self.runs = runs
        # After all others, which would confuse it.
        self.alone = alone
        # No backend plays a part in it: the first one is enough.
        self.once = once
