"""Light members as tests start them."""
import subprocess
import urllib.request

from netlinks import inside
from ringnodes import Node


class Light(Node):
    """It has no address at which others could reach it."""

    command = ("serve", "--light")
    lines_count = 3

    def launch(self, *options, wrap=()):
        self.process = subprocess.Popen(
            [*self.wrap, *wrap, self.program, *self.command, "--data", self.directory, "--http", "0", *options],
            stdout=subprocess.PIPE, stderr=self.log.open("a"), text=True,
        )
        return self

    def ready(self):
        lines = [self.process.stdout.readline() for _ in range(self.lines_count)]
        assert "as a light member" in lines[2], "".join(lines) + self.said
        self.url = lines[0].split()[-1]
        return self

    def get(self, path):
        if not self.namespace:
            return super().get(path)
        with inside(self.namespace), urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return answer.read().decode()

    @property
    def is_in(self):
        return self.status()["state"] == "member"
