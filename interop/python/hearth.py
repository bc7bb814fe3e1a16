"""A running hearth for tests. HEARTH_BIN names the binary; without it one is built."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Server:
    """hearth serve on a free port."""

    def __init__(self, *args):
        binary = os.environ.get("HEARTH_BIN")
        self.tmp = None
        if not binary:
            self.tmp = tempfile.TemporaryDirectory()
            binary = str(Path(self.tmp.name, "hearth"))
            env = dict(os.environ, CGO_ENABLED="0")
            subprocess.run(["go", "build", "-o", binary, "./cmd/hearth"], cwd=ROOT, env=env, check=True)
        self.process = subprocess.Popen([binary, "serve", "--port", "0", "--prefix-cache-dir", "off", *args], stdout=subprocess.PIPE, text=True)
        self.url = None
        for line in self.process.stdout:
            if line.startswith("listening on "):
                self.url = line.split()[2]
                break
        if self.url is None:
            raise RuntimeError(f"hearth serve printed no address and ended with {self.process.wait()}")

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.stdout.read()
        code = self.process.wait(timeout=30)
        self.process.stdout.close()
        if self.tmp:
            self.tmp.cleanup()
        return code
