"""Runs Python text, lists the methods of the official SDK, and parses HCL. Reads one JSON object a line and writes one.

The SDK waits only 50 ms between two requests for a task, and its clients share the certificates of this machine, which
take 20 ms of CPU time to load, so that tests are fast. Nothing else of it is changed.
"""

import contextlib
import functools
import inspect
import io
import json
import os
import re
import ssl
import sys
import textwrap
import time

import gcore
import hcl2
from gcore._resource import SyncAPIResource
from hcl2.utils import SerializationOptions

SyncAPIResource._sleep = lambda self, seconds: time.sleep(0.05)
ssl.create_default_context = functools.cache(ssl.create_default_context)
REQUEST = re.compile(r'self\._(get|post|put|patch|delete|get_api_list)\(\s*(?:path_template\(\s*)?f?"([^"]+)"')


def methods_of(resource, name=""):
    """All methods that send a request, with their HTTP method, path and parameters."""
    found = []
    for attribute in dir(type(resource)):
        if attribute.startswith(("_", "with_")):
            continue
        value = inspect.getattr_static(type(resource), attribute)
        full = f"{name}.{attribute}".lstrip(".")
        if not inspect.isfunction(value):
            inner = getattr(resource, attribute)
            if isinstance(inner, SyncAPIResource):
                found += methods_of(inner, full)
            continue
        source = textwrap.dedent(inspect.getsource(value))
        polling = f"{attribute}_and_poll"
        called = getattr(resource, polling, None) or getattr(resource, attribute)
        for verb, path in REQUEST.findall(source):
            stated = re.search(r'method="(\w+)"', source)
            parameters = inspect.signature(called).parameters.values()
            found.append(
                {
                    "name": f"{full}_and_poll" if hasattr(resource, polling) else full,
                    "method": stated[1] if stated else "get" if verb == "get_api_list" else verb,
                    "path": path,
                    "parameters": [one.name for one in parameters],
                    "required": [one.name for one in parameters if one.default is one.empty],
                }
            )
    return found


def run(text, token):
    os.environ["CLOUDYARD_TOKEN"] = token
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            exec(compile(text, "text", "exec"), {})
    except gcore.APIStatusError as error:
        return {"status": error.status_code, "body": error.body}
    except Exception as error:
        return {"status": 0, "body": f"{type(error).__name__}: {error}"}
    return {"status": 200, "body": output.getvalue()}


class Recorder:
    """Has every attribute, and records the calls of them."""

    tasks = ()

    def __init__(self, calls, name=""):
        self._calls = calls
        self._name = name

    def __getattr__(self, name):
        return Recorder(self._calls, f"{self._name}.{name}".lstrip("."))

    def __call__(self, **given):
        self._calls.append([self._name, given])
        return self


def calls_of(text):
    """The calls that the text makes, without sending a request."""
    calls = []

    def record(**given):
        calls.append(["Gcore", given])
        return Recorder(calls)

    real, gcore.Gcore = gcore.Gcore, record
    try:
        run(text, "token")
    finally:
        gcore.Gcore = real
    return calls


def hcl_of(text):
    options = SerializationOptions(with_comments=False, strip_string_quotes=True, explicit_blocks=False)
    return hcl2.loads(text, serialization_options=options)


COMMANDS = {
    "methods": lambda: methods_of(gcore.Gcore(api_key="key", base_url="http://127.0.0.1:9").cloud),
    "run": run,
    "calls": calls_of,
    "hcl": hcl_of,
}

for line in sys.stdin:
    command, *given = json.loads(line)
    print(json.dumps(COMMANDS[command](*given)), flush=True)
