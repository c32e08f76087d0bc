"""A crowd that stays: ten thousand connections that had a stream each and are idle, and a thousand that read nothing of
theirs. What memory the server holds, and how soon it answers somebody else.

usage: crowd.py URL PID [IDLE SLOW]    of a server with a language model; the limit of open files must allow as many
"""
import json
import resource
import socket
import sys
import time
import urllib.request

url, pid = sys.argv[1].rstrip("/"), sys.argv[2]
idle, slow = map(int, sys.argv[3:5]) if len(sys.argv) > 4 else (10_000, 1_000)
host, port = url.removeprefix("http://").split(":")
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def memory():
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


def post(body):
    text = json.dumps(body)
    return (f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(text)}\r\n\r\n{text}").encode()


def connect(receive_bytes=0):
    s = socket.socket()
    if receive_bytes:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    s.connect((host, int(port)))
    return s


def neighbour():
    begin = time.time()
    body = json.dumps({"prompt": "the", "max_tokens": 8, "temperature": 0}).encode()
    urllib.request.urlopen(urllib.request.Request(url + "/v1/completions", body), timeout=60).read()
    return 1000 * (time.time() - begin)


def say(what):
    took = sorted(neighbour() for _ in range(5))[2]
    print(f"crowd: {what}: {memory():.1f} MiB; a request beside it {took:.1f} ms", flush=True)
    return memory()


def check(condition, what):
    if not condition:
        sys.exit(f"crowd: {what}")


def finish(sockets):
    for s in sockets:
        s.settimeout(60)
        text = b""
        while b"0\r\n\r\n" not in text[-16:]:
            part = s.recv(65536)
            if not part:
                sys.exit("crowd: a connection ended")
            text += part


large = post({"prompt": "the", "max_tokens": 60, "n": 16, "temperature": 1, "stream": True})
warm = [connect() for _ in range(min(100, slow))]  # what the engine needs for them stays: it is no reader's
for s in warm:
    s.sendall(large)
finish(warm)
for s in warm:
    s.close()
alone = say("alone")
crowd = []
small = post({"prompt": "the", "max_tokens": 4, "temperature": 0, "stream": True})
while len(crowd) < idle:
    more = [connect() for _ in range(min(500, idle - len(crowd)))]
    for s in more:
        s.sendall(small)
    finish(more)
    crowd += more
with_idle = say(f"{len(crowd)} idle streams")
check(with_idle - alone < 16 / 1024 * idle, "an idle connection holds more than 16 KiB")
readers = []
for _ in range(slow):
    s = connect(receive_bytes=2048)
    s.sendall(large)
    readers.append(s)
with_slow = say(f"{len(readers)} slow readers beside them")
check(with_slow - with_idle < 512 / 1024 * slow, "a slow reader holds more than twice what it may")
time.sleep(10)
check(say("ten seconds later") < 1.02 * with_slow + 1, "memory grows while nothing comes")
for s in crowd + readers:
    s.close()
time.sleep(5)
say("alone again")
