"""A Debian host for tests: a root file system in namespaces of its own, and units that run without systemd.

Usage: debian-host.py ROOT, as process 2 of a new pid namespace. Reads one JSON object a line, and answers with one:
  {"run": COMMAND}                  runs a shell command in the root: {"code", "output"}
  {"start": UNIT, "instance": "1"}  starts a unit as systemd would, and waits for READY=1 or its end: {"ready", "output"}
  {"stop": UNIT, "signal": "TERM"}  stops its main process: {"code", "output"}
  {"messages": UNIT}                the messages that it has sent to systemd: {"messages"}
  {"processes": null}               command lines of all processes in the namespace: {"processes"}
Of a unit it applies the user, the environment, the capabilities, no_new_privs and the directories.
"""

import configparser
import itertools
import json
import os
import pwd
import select
import signal
import socket
import subprocess
import sys
import time

ROOT = sys.argv[1]
WATCHDOG_SECONDS = 2
units = {}
starts = itertools.count()


class Settings(dict):
    """Lists of values: units repeat keys."""

    def __setitem__(self, key, value):
        if isinstance(value, list) and key in self:
            self[key].extend(value)
        else:
            super().__setitem__(key, value)


def in_root(path):
    return ROOT + path


def unit_settings(name, instance):
    parser = configparser.RawConfigParser(strict=False, dict_type=Settings, comment_prefixes="#", delimiters="=")
    parser.optionxform = str
    with open(in_root("/usr/lib/systemd/system/" + name)) as text:
        parser.read_string(text.read())
    values = {}
    for key, value in parser.items("Service"):
        lines = value.split("\n")
        values[key] = [line.replace("%%", "\0").replace("%i", instance).replace("\0", "%") for line in lines]
    return values


def run(command):
    done = subprocess.run(
        ["chroot", ROOT, "/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"},
    )
    return {"code": done.returncode, "output": done.stdout.decode()}


def make_folders(settings, user):
    for kind, above in [("StateDirectory", "/var/lib/"), ("CacheDirectory", "/var/cache/")]:
        for name in settings.get(kind, []):
            owner = f"-o {user} -g {user}" if user else ""
            mode = settings.get(kind + "Mode", ["0755"])[-1]
            run(f"[ -d {above}{name} ] || install -d {owner} -m {mode} {above}{name}")


def environment_of(settings):
    variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    lines = list(settings.get("Environment", []))
    for file in settings.get("EnvironmentFile", []):
        with open(in_root(file)) as text:
            lines += [line.strip() for line in text if line.strip() and not line.startswith("#")]
    variables.update(line.split("=", 1) for line in lines)
    return variables


def start(name, instance):
    settings = unit_settings(name, instance)
    user = settings.get("User", [""])[-1]
    make_folders(settings, user)
    variables = environment_of(settings)
    path = "/run/notify-" + str(next(starts))
    inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    inbox.bind(in_root(path))
    os.chmod(in_root(path), 0o777)
    variables["NOTIFY_SOCKET"] = path
    variables["WATCHDOG_USEC"] = str(WATCHDOG_SECONDS * 1000000)
    if "CapabilityBoundingSet" not in settings:
        raise ValueError("the unit keeps all capabilities")
    kept = " ".join(settings["CapabilityBoundingSet"]).split()
    bounding = ",".join(["-all"] + ["+" + capability[4:].lower() for capability in kept])
    command = ["chroot", ROOT, "setpriv", "--bounding-set", bounding, "--inh-caps", "-all", "--no-new-privs"]
    if user:
        command += ["--reuid", user, "--regid", user, "--init-groups"]
    log = open(in_root("/var/log/" + name), "ab")
    # The process keeps its id through chroot and setpriv.
    shell = 'WATCHDOG_PID=$$ exec "$@"'
    child = subprocess.Popen(
        ["sh", "-c", shell, "sh"] + command + settings["ExecStart"][-1].split(),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        env=variables,
    )
    unit = units[name] = {"child": child, "inbox": inbox, "messages": [], "log": log.name}
    deadline = time.monotonic() + 150
    while "READY=1" not in unit["messages"] and child.poll() is None and time.monotonic() < deadline:
        receive(unit, 0.2)
    return {"ready": "READY=1" in unit["messages"], "output": output_of(unit)}


def output_of(unit):
    with open(unit["log"]) as text:
        return text.read()


def receive(unit, seconds):
    while select.select([unit["inbox"]], [], [], seconds)[0]:
        # Received descriptors are closed at once: that ends the barrier for which systemd-notify waits.
        text, descriptors, _, _ = socket.recv_fds(unit["inbox"], 4096, 8)
        for descriptor in descriptors:
            os.close(descriptor)
        unit["messages"] += [line for line in text.decode().split("\n") if line and line != "BARRIER=1"]
        seconds = 0


def stop(name, which):
    unit = units[name]
    unit["child"].send_signal(getattr(signal, "SIG" + which))
    deadline = time.monotonic() + 90
    while unit["child"].poll() is None and time.monotonic() < deadline:
        receive(unit, 0.2)
    return {"code": unit["child"].poll(), "output": output_of(unit)}


def messages(name):
    receive(units[name], 0.2)
    return {"messages": units[name]["messages"]}


def processes():
    lines = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as text:
                lines.append(text.read().replace(b"\0", b" ").decode().strip())
        except OSError:
            pass
    return {"processes": [line for line in lines if line]}


def answer(request):
    if "run" in request:
        return run(request["run"])
    if "start" in request:
        return start(request["start"], request.get("instance", ""))
    if "stop" in request:
        return stop(request["stop"], request["signal"])
    if "messages" in request:
        return messages(request["messages"])
    return processes()


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
