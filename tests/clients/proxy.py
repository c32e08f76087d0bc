"""deploy/nginx.conf as nginx runs it, before a server with keys: TLS, keys, streams, limits, the client's address.
And deploy/prometheus by promtool.

usage: proxy.py PROGRAM EN_DE LM    the program, folders of a translator and a language model; needs nginx, openssl, promtool
"""
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time

program, en_de, lm = sys.argv[1:4]
root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        sys.exit(f"proxy: {what}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port):
    for _ in range(200):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    sys.exit(f"proxy: nobody listens on port {port}")


def wait_until_ready(port):
    wait_for(port)  # though its models may still be loaded
    for _ in range(200):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/health/ready")
        if connection.getresponse().status == 200:
            return
        time.sleep(0.05)
    sys.exit(f"proxy: the server on port {port} does not load its models")


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def check_proxy(folder, port):
    context = ssl.create_default_context(cafile=f"{folder}/cert.pem")

    def ask(method, path, body=None, key="right"):
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)
        connection.request(method, path, body, {"Authorization": f"Bearer {key}", "Host": "translate.example"})
        return connection.getresponse()

    check(ask("GET", "/v1/models", key="wrong").status == 401, "a wrong key is refused")
    answer = ask("POST", "/v1/translations", json.dumps({"text": "the dog is hungry", "target_lang": "de"}))
    check(answer.status == 200, f"a right key passes: {answer.status}")
    check(re.fullmatch("[0-9a-f]{32}", answer.headers["x-request-id"]), "the request has nginx's id")
    check(json.load(answer)["translations"][0]["text"] is not None, "a translation")
    check(ask("GET", "/metrics").status == 403, "counters stay inside")
    check(ask("POST", "/v1/translations", b"x" * (2 << 20)).status == 413, "a large body")
    # A stream that fits a page, while others make each step slow: it comes as it is written, not at its end.
    body = {"model": "lm", "prompt": "the", "temperature": 1, "seed": 1, "stream": True}
    crowd = [ask("POST", "/v1/completions", json.dumps(dict(body, max_tokens=100, n=16))) for _ in range(16)]
    answer = ask("POST", "/v1/completions", json.dumps(dict(body, max_tokens=15)))
    check(answer.status == 200, f"a stream: {answer.read() if answer.status != 200 else None}")
    check(answer.headers["content-type"] == "text/event-stream", "events")
    parts = []
    while part := answer.read1(1 << 20):
        parts.append(part)
    check(b"".join(parts).endswith(b"data: [DONE]\n\n"), "the end of the stream")
    check(len(b"".join(parts)) < 4096, "the stream fits a page")
    check(len(parts) > 3, f"events come as they are written, not in {len(parts)} parts")
    for other in crowd:
        check(other.read().endswith(b"data: [DONE]\n\n"), "the end of another stream")
    with open(f"{folder}/access.log") as file:
        check(all(line.startswith("127.0.0.1 ") for line in file), "the log has the client's address")


def run_proxy(folder):
    write(f"{folder}/keys", "right\n")
    os.chmod(f"{folder}/keys", 0o600)
    inner, outer = free_port(), free_port()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"],
                   check=True, capture_output=True)
    with open(f"{root}/deploy/nginx.conf") as file:
        conf = file.read()
    for before, after in (("127.0.0.1:8080", f"127.0.0.1:{inner}"), ("listen 443", f"listen 127.0.0.1:{outer}"),
                          ("/etc/heddle/", f"{folder}/")):
        check(before in conf, f"nginx.conf has {before}")
        conf = conf.replace(before, after)
    write(f"{folder}/heddle.conf", conf)
    temporary = " ".join(f"{name}_temp_path {folder}/{name};" for name in
                         ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    write(f"{folder}/nginx.conf", f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
          f"http {{ access_log {folder}/access.log; {temporary} include {folder}/heddle.conf; }}\n")
    started = []
    try:
        started.append(subprocess.Popen([program, "serve", f"en-de={en_de}", f"lm={lm}", "--port", str(inner), "--keys",
                                         f"{folder}/keys"], stderr=subprocess.DEVNULL))
        wait_until_ready(inner)
        started.append(subprocess.Popen(["nginx", "-p", folder, "-c", f"{folder}/nginx.conf"], stderr=subprocess.DEVNULL))
        wait_for(outer)
        check_proxy(folder, outer)
    finally:
        for process in started:
            process.terminate()
            process.wait()


def check_alerts():
    for words in (["rules", f"{root}/deploy/prometheus/alerts.yaml"],
                  ["config", "--syntax-only", f"{root}/deploy/prometheus/prometheus.yaml"]):
        done = subprocess.run(["promtool", "check", *words], capture_output=True, text=True)
        check(done.returncode == 0, done.stdout + done.stderr)


with tempfile.TemporaryDirectory() as place:
    run_proxy(place)
check_alerts()
print(f"proxy: {checks} checks passed")
