"""What all tests share. Nothing heavy is imported here: some tests hold that a command starts without torch."""

import os

# Tiny models and a busy machine: threads that spin while they wait would take the time of those that work. It must be
# said before torch is loaded, and is inherited by the commands that tests start.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
