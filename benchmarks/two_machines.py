"""Two machines in one: network namespaces with names and addresses of their own, joined by a cable (root, iproute2).

Traffic between them goes through a pair of virtual devices, whose speed can be limited, and which can be unplugged.
Storage is shared as far as they work in the same folder.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

SET_NAME = "import os, socket, sys; socket.sethostname(sys.argv[1]); os.execvp(sys.argv[2], sys.argv[2:])"
PORT = 29400
ETC = Path("/etc/netns")
# Else a machine that comes back waits in vain for the first one's address, which torchrun gives only once.
NEW_ADDRESSES = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def why_not() -> str | None:
    """Return what keeps machines from being made here, None if nothing does."""
    if sys.platform != "linux" or os.geteuid():
        return "network namespaces need root on Linux"
    missing = [program for program in ("ip", "tc", "unshare") if not shutil.which(program)]
    if missing:
        return f"{' and '.join(missing)} missing; install iproute2 and util-linux"
    name = f"seqtool-{os.getpid()}-try"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode:
        return "network namespaces cannot be made here"
    subprocess.run(["ip", "netns", "delete", name], check=True)
    return None


class TwoMachines:
    """Two namespaces, each with one end of a cable; numbered 0 and 1."""

    def __init__(self) -> None:
        self.names = [f"seqtool-{os.getpid()}-{number}" for number in range(2)]
        self.addresses = [f"10.211.{os.getpid() % 250}.{number + 1}" for number in range(2)]
        self.devices = [f"cable{os.getpid()}{end}" for end in "ab"]
        self.running: list[list[subprocess.Popen[str]]] = [[], []]

    def __enter__(self) -> "TwoMachines":
        try:
            for name in self.names:
                run("ip", "netns", "add", name)
            run("ip", "link", "add", self.devices[0], "type", "veth", "peer", "name", self.devices[1])
            for name, device, address in zip(self.names, self.devices, self.addresses, strict=True):
                run("ip", "link", "set", device, "netns", name)
                run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", device)
                run("ip", "-n", name, "link", "set", "lo", "up")
                self.make_hosts(name)
            self.plug()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._remove()

    def _remove(self) -> None:
        for number, name in enumerate(self.names):
            self.crash(number)
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)
            shutil.rmtree(ETC / name, ignore_errors=True)

    def make_hosts(self, name: str) -> None:
        """Let the machines know each other by name, and ask nobody else: these files are put over those in /etc."""
        known = zip(self.addresses, ("machine1", "machine2"), strict=True)
        (ETC / name).mkdir(parents=True)
        lines = ["127.0.0.1 localhost", *(f"{address} {host}" for address, host in known)]
        (ETC / name / "hosts").write_text("\n".join(lines) + "\n")
        (ETC / name / "resolv.conf").write_text("nameserver 127.0.0.1\n")  # where nobody listens

    def plug(self) -> None:
        """Join the machines."""
        for name, device in zip(self.names, self.devices, strict=True):
            run("ip", "-n", name, "link", "set", device, "up")

    def unplug(self) -> None:
        """Part the machines; neither learns of it."""
        run("ip", "-n", self.names[0], "link", "set", self.devices[0], "down")

    def limit(self, megabits: float) -> None:
        """Limit the speed of the cable in both directions."""
        for name, device in zip(self.names, self.devices, strict=True):
            bucket = ["tbf", "rate", f"{megabits:g}mbit", "burst", "1mb", "latency", "100ms"]
            run("ip", "netns", "exec", name, "tc", "qdisc", "replace", "dev", device, "root", *bucket)

    def start(self, number: int, command: Sequence[object], **options: Any) -> "subprocess.Popen[str]":
        """Start a command on a machine, in a process group of its own."""
        name = f"machine{number + 1}"
        inside = ["ip", "netns", "exec", self.names[number], "unshare", "--uts"]
        whole = [*inside, sys.executable, "-c", SET_NAME, name, *map(str, command)]
        environment = {**os.environ, "GLOO_SOCKET_IFNAME": self.devices[number], **options.pop("env", {})}
        options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, **options}
        process = subprocess.Popen(whole, env=environment, start_new_session=True, **options)
        self.running[number].append(process)
        return process

    def start_workers(
        self, number: int, command: Sequence[object], n_workers: int = 1, restarts: int = 0, **options: Any
    ) -> "subprocess.Popen[str]":
        """Start a machine's share of a `python -m seqtool ...` as torchrun does; its first machine is number 0."""
        flags = ["--nnodes", 2, "--nproc-per-node", n_workers, "--max-restarts", restarts, "--monitor-interval", 0.2]
        flags += ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{self.addresses[0]}:{PORT}", "--rdzv-id", "run"]
        flags += ["--local-addr", self.addresses[number]]
        torchrun = [sys.executable, "-m", "torch.distributed.run", *flags]
        options["env"] = {**options.get("env", {}), **NEW_ADDRESSES}
        return self.start(number, [*torchrun, "-m", "seqtool", *command[3:]], **options)

    def crash(self, number: int) -> None:
        """End all processes on a machine at once."""
        pids = subprocess.run(["ip", "netns", "pids", self.names[number]], capture_output=True, text=True).stdout
        for pid in map(int, pids.split()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in self.running[number]:
            process.wait()
        self.running[number].clear()

    def sent_bytes(self, number: int) -> int:
        """Return how many bytes a machine has sent over the cable."""
        path = f"/sys/class/net/{self.devices[number]}/statistics/tx_bytes"
        inside = ["ip", "netns", "exec", self.names[number], "cat", path]
        return int(subprocess.run(inside, check=True, capture_output=True, text=True).stdout)


def run(*command: str) -> None:
    """Run a command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


def wait_until(condition: Any, patience: float = 120.0) -> bool:
    """Wait for a condition; return whether it came."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def last_line(file: Path) -> str:
    """Return the last whole line of a file, empty if there is none."""
    text = file.read_text() if file.exists() else ""
    return text.rpartition("\n")[0].rpartition("\n")[2]
