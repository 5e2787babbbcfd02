"""Apple's services, played by portcullis-apple beside all servers of the tests."""
import base64
import os
import secrets
import time

from device import APP
from processes import Processes

# Bit 0 of this device is set from the start.
FLAGGED = "flagged"
PATIENCE = 40.0
# What each device token begins with; see token().
MARK = base64.b64encode(b"device-token").decode()


def program_beside(portcullis):
    """The program, where the gateway's own lies; None when it was not built."""
    path = os.path.join(os.path.dirname(portcullis), "portcullis-apple")
    return path if os.access(path, os.X_OK) else None


class Apple:
    """`section` is what a gateway's configuration says to call it; `silent` calls nobody."""

    def __init__(self, program, folder):
        os.mkdir(folder)
        self.processes = Processes(os.path.join(folder, "output"))
        self.processes.start([program, folder, APP.split(".", maxsplit=1)[0], f"{FLAGGED}=1,0"])
        path = os.path.join(folder, "apple.yaml")
        deadline = time.monotonic() + PATIENCE
        while not os.path.exists(path):
            if time.monotonic() > deadline:
                raise RuntimeError("portcullis-apple does not start")
            time.sleep(0.02)
        with open(path, encoding="utf-8") as file:
            self.section = file.read()
        # Port 1 refuses.
        self.silent = self.section[:self.section.index("  hosts:")] \
            + '  hosts: { device_check: "https://localhost:1" }\n'

    def stop(self):
        self.processes.stop()


def token(device, environment="production"):
    """A new device token, as the stand-in makes them."""
    text = f"device-token\n{environment}\n{device}\n{secrets.token_hex(32)}"
    return base64.b64encode(text.encode()).decode()


def foreign():
    """What is no token of Apple's."""
    return base64.b64encode(secrets.token_bytes(48)).decode()
