"""What all tests share. Nothing heavy is imported here: some tests hold that a command starts without torch."""

import os
import signal

# Tiny models and a busy machine: threads that spin while they wait would take the time of those that work. It must be
# said before torch is loaded, and is inherited by the commands that tests start.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
if "PYTEST_XDIST_WORKER" in os.environ:  # as many processes of tests as cores
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell starts what runs in its background with Ctrl-C ignored, and commands inherit that; tests send it on purpose.
signal.signal(signal.SIGINT, signal.default_int_handler)
