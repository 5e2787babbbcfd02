"""What is read from the machine (processor time, memory, what it is made of), and medians."""
import os
import re
import statistics
import subprocess

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def medians(samples):
    """Of each figure that the samples have."""
    return {name: statistics.median(sample[name] for sample in samples) for name in samples[0]}


def in_turns(rounds, kinds, sample):
    """The medians of each kind. One sample of each is taken in a round: sample(kind, number).

    The first round warms up. Each round begins with another kind, since a machine's pace can drift
    within a round.
    """
    samples = {kind: [] for kind in kinds}
    for number in range(rounds + 1):
        first = number % len(kinds)
        for kind in [*kinds[first:], *kinds[:first]]:
            measured = sample(kind, number)
            if number > 0:
                samples[kind].append(measured)
    return {kind: medians(rows) for kind, rows in samples.items()}


def cpu_seconds(pid):
    """User and system time of a process so far, all threads."""
    with open(f"/proc/{pid}/stat") as file:
        # The name in brackets may hold spaces; utime and stime are the 14th and 15th field.
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def cpu_seconds_of_children(pid):
    """The same of a process and all that it has started, those that have ended too."""
    seconds = cpu_seconds(pid)
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    # cutime and cstime: of children that were waited for.
    seconds += (int(fields[13]) + int(fields[14])) / TICKS_A_SECOND
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            if parent == pid:
                seconds += cpu_seconds(int(entry))
        except (OSError, ValueError):
            continue
    return seconds


def memory_kib(pid, field="VmRSS"):
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name == field:
                return int(value.split()[0])
    return 0


def first_line(command, pattern=r"(.*)"):
    """What a program prints about itself; empty when it is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    found = re.search(pattern, done.stdout + done.stderr)
    return found.group(1).strip() if found else ""


def bare_verification_us(seconds):
    """CPU time of one P-256 verification as OpenSSL's own benchmark measures it."""
    command = ["openssl", "speed", "-seconds", str(seconds), "ecdsap256"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return 1e6 / float(done.stdout.split()[-1])


def machine(root, nginx):
    with open("/proc/cpuinfo") as file:
        models = re.findall(r"model name\s*:\s*(.*)", file.read())
    with open("/etc/os-release") as file:
        system = re.search(r'PRETTY_NAME="?([^"\n]*)', file.read())
    return {
        "processor": models[0] if models else os.uname().machine,
        "cores": os.cpu_count(),
        "kernel": os.uname().release,
        "system": system.group(1) if system else "",
        "swift": first_line(["swift", "--version"], r"Swift version (\S+)"),
        "nginx": first_line([nginx, "-v"], r"nginx/(\S+)"),
        "haproxy": first_line(["haproxy", "-v"], r"version (\S+)"),
        "openssl": first_line(["openssl", "version"], r"OpenSSL (\S+)"),
        "commit": first_line(["git", "-C", root, "rev-parse", "--short", "HEAD"], r"^(\w+)$"),
        "load": round(os.getloadavg()[0], 2),
    }
