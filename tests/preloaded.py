"""Imported by the process that tests fork others from (see forking.py): models are in memory."""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # where processes are forked, there may be no other thread

from afresh.extract.language import classify
from afresh.models.choose import FAST, builtin

model = builtin(FAST)
assert model is not None
model.rows(["a first text"])
classify("a first text")
