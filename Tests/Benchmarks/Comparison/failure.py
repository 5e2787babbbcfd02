"""What ends a measurement."""


class Failure(Exception):
    """What went wrong, and what to do next."""

    def __init__(self, text, next_step):
        super().__init__(text)
        self.next_step = next_step
