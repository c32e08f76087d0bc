"""Mixed load for long: translations and completions of every kind, streams, clients that leave, bad requests and reloads, at once. No answer is
wrong, none is lost, and the server holds no more at the end than it did when all had been asked for once.

usage: mixed_load.py URL PID [MINUTES]    of a server with a translator "en-de" and a language model "lm" with a chat template
"""
import collections
import http.client
import json
import os
import random
import signal
import sys
import threading
import time

url, pid = sys.argv[1].rstrip("/"), int(sys.argv[2])
seconds = 60 * (float(sys.argv[3]) if len(sys.argv) > 3 else 60)
address = url.removeprefix("http://")
TEXTS = ["the dog is hungry", "where is the station?", "the old man sees a small house", "I have <b>two</b> apples", "we go"]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}}, "required": ["a", "b"], "additionalProperties": False}
MESSAGES = [{"role": "user", "content": "the dog"}]

# (path, body, status) of requests whose answer is the same each time, those that draw by a seed too.
SAME = [("/v1/translations", {"text": text, "beam": beam, "n_best": beam, "scores": True}, 200) for text in TEXTS for beam in (1, 4)]
SAME += [
    ("/v1/translations", {"text": TEXTS[:3], "alignment": "hard"}, 200),
    ("/v1/translations", {"text": TEXTS[3], "format": "html"}, 200),
    ("/translate", {"q": TEXTS[0], "source": "en", "target": "de"}, 200),
    ("/v2/translate", {"text": TEXTS[:2], "target_lang": "DE"}, 200),
    ("/v1/attention", {"model": "en-de", "text": TEXTS[0], "target": "der Hund"}, 200),
    ("/v1/completions", {"model": "lm", "prompt": "the", "max_tokens": 24, "temperature": 0}, 200),
    ("/v1/completions", {"model": "lm", "prompt": "the", "max_tokens": 16, "n": 4, "seed": 3, "logprobs": 2}, 200),
    ("/v1/chat/completions", {"model": "lm", "messages": MESSAGES, "max_tokens": 60, "seed": 2,
                              "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}}, 200),
    ("/v1/translations", {"text": 3}, 400),
    ("/v1/completions", {"model": "none", "prompt": "a"}, 404),
    ("/v1/completions", {"model": "lm", "prompt": "a", "max_tokens": -1}, 400),
    ("/nowhere", {}, 404),
]
STREAMS = [
    ("/v1/completions", {"model": "lm", "prompt": "we", "max_tokens": 40, "temperature": 0, "stream": True}),
    ("/v1/chat/completions", {"model": "lm", "messages": MESSAGES, "max_tokens": 40, "temperature": 1, "seed": 5, "stream": True}),
    ("/v1/translations", {"text": TEXTS, "beam": 4, "stream": True, "partial": True}),
]
counts, calls, counts_lock = collections.Counter(), collections.Counter(), threading.Lock()
failures = []
is_ending = threading.Event()


def ask(path, body=None):
    """Status and bytes of an answer."""
    connection = http.client.HTTPConnection(address, timeout=120)
    connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body))
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response.status, text


def said(path, body):
    """Status of an answer, and what it says without what differs each time."""
    status, text = ask(path, body)
    value = json.loads(text)
    if isinstance(value, dict):
        for name in ("id", "created", "usage", "timing", "error"):
            value.pop(name, None)
    return status, value


def streamed(path, body):
    """Status of a stream, and the texts that it makes, in order; the bytes as they are where they are no whole stream."""
    status, text = ask(path, body)
    events = [event.removeprefix("data: ") for event in text.decode().split("\n\n") if event]
    if status != 200 or events[-1:] != ["[DONE]"]:
        return status, text
    texts = collections.defaultdict(str)
    for event in map(json.loads, events[:-1]):
        if event.get("final"):
            texts[event["index"]] = event["text"]
        for choice in event.get("choices", ()):
            texts[choice["index"]] += choice.get("text") or choice.get("delta", {}).get("content") or ""
    return status, [texts[index] for index in sorted(texts)]


def at_once(path, body):
    """The same without a stream."""
    status, value = said(path, {name: of for name, of in body.items() if name not in ("stream", "partial")})
    found = value["translations"] if "translations" in value else value["choices"]
    return status, [one["message"]["content"] if "message" in one else one["text"] for one in found]


def ask_the_same(draw):
    index = draw.randrange(len(SAME))
    path, body, status = SAME[index]
    answer = said(path, body)
    if answer != expected[index]:
        failures.append(f"{path} {json.dumps(body)}: {answer}, alone {expected[index]}")
    return f"{status} {path}"


def read_a_stream(draw):
    index = draw.randrange(len(STREAMS))
    path, body = STREAMS[index]
    answer = streamed(path, body)
    if answer != expected_texts[index]:
        failures.append(f"{path} {json.dumps(body)}: a stream of {answer}, at once {expected_texts[index]}")
    return f"stream {path}"


def leave_a_stream(draw):
    path, body = draw.choice(STREAMS)
    connection = http.client.HTTPConnection(address, timeout=120)
    connection.request("POST", path, json.dumps(body))
    if draw.random() < 0.7:
        connection.getresponse().read(draw.randrange(1, 400))
    connection.close()
    return f"left {path}"


def look(_):
    status, text = ask("/metrics")
    if status != 200 or b"heddle_" not in text:
        failures.append(f"/metrics: {status}")
    return "/metrics"


def work(seed):
    draw = random.Random(seed)
    while not is_ending.is_set():
        call = draw.choices((ask_the_same, read_a_stream, leave_a_stream, look), (12, 4, 3, 1))[0]
        try:
            name = call(draw)
        except Exception as error:  # of any kind: a thread that ends would ask nothing more
            failures.append(f"{call.__name__}: {error!r}")
            name = "failed"
        with counts_lock:
            counts[name] += 1
            calls[call.__name__] += 1


def held():
    with open(f"/proc/{pid}/status") as file:
        memory = next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024
    return memory, len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task"))


def say(what):
    memory, files, threads = held()
    print(f"mixed load: {what}: {sum(counts.values())} requests, {len(failures)} wrong; {memory:.1f} MiB, {files} files, {threads} threads", flush=True)
    return memory


expected = [said(path, body) for path, body, _ in SAME]
for (path, body, status), (found, _) in zip(SAME, expected):
    if found != status:
        sys.exit(f"mixed load: {path} {json.dumps(body)}: status {found}, not {status}")
expected_texts = [at_once(path, body) for path, body in STREAMS]
begin = time.time()
workers = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
for worker in workers:
    worker.start()
# What each part of the time held at most: allocators keep what a peak once took, so that the first parts rise.
parts, marks = 12, []
for part in range(parts):
    most = 0.0
    while time.time() < begin + seconds * (part + 1) / parts:
        time.sleep(min(5, seconds / parts / 4))
        most = max(most, held()[0])
    if part % 3 == 2:
        os.kill(pid, signal.SIGHUP)
    marks.append(most)
    say(f"{(time.time() - begin) / 60:.1f} minutes, at most {most:.1f} MiB in this twelfth")
is_ending.set()
for worker in workers:
    worker.join()
say("at the end")
print("mixed load: " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
if len(calls) < 4:
    sys.exit(f"mixed load: of four kinds of calls only {sorted(calls)} were made")
if failures:
    sys.exit(f"mixed load: {len(failures)} wrong, the first: {failures[0][:2000]}")
# In a shorter run memory still grows to what all kinds of requests at once take.
early, late = max(marks[parts // 3 - 1:parts // 2]), max(marks[-2:])
print(f"mixed load: at most {early:.1f} MiB between a third and half of the time, {late:.1f} MiB at its end")
if seconds >= 1800 and late > 1.05 * early + 4:
    sys.exit("mixed load: memory grows")
