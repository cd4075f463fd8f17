"""What can keep the benchmark from its figures."""


class BenchFailure(RuntimeError):
    """Something did not work; the message is for the reader."""
