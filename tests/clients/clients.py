"""Unmodified clients of OpenAI, DeepL and LibreTranslate against a server: what they return, and their errors.

usage: clients.py URL    of a server with a translator "en-de", a language model "lm", an "encoder", and "languages", a classifier
"""
import sys

import enum
import json
import urllib.error

import deepl
import openai
import pydantic
from libretranslatepy import LibreTranslateAPI

url = sys.argv[1].rstrip("/")
checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        sys.exit(f"clients: {what}")


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    sys.exit(f"clients: no {kind.__name__}")


def counts(usage):
    return usage.prompt_tokens, usage.completion_tokens, usage.total_tokens


def test_openai():
    client = openai.OpenAI(base_url=url + "/v1", api_key="any", max_retries=0)
    check({model.id for model in client.models.list().data} >= {"en-de", "lm"}, "models")
    one = client.models.retrieve("lm")
    check(one.id == "lm" and one.owned_by == "heddle", "a model by its name")
    error = raises(openai.NotFoundError, lambda: client.models.retrieve("none"))
    check("none" in error.message and error.code == "model_not_found", "the error names the model")
    asked = {"model": "lm", "prompt": "the", "max_tokens": 10, "temperature": 0}
    whole = client.completions.create(**asked)
    check(whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens, "usage")
    check(whole.choices[0].finish_reason in ("stop", "length"), "finish_reason")
    text, usage, reasons = "", None, []
    for event in client.completions.create(**asked, stream=True, stream_options={"include_usage": True}):
        usage = event.usage or usage
        for choice in event.choices:
            text += choice.text
            reasons.append(choice.finish_reason)
    check(text == whole.choices[0].text, "the stream says what the whole response says")
    check(counts(usage) == counts(whole.usage), "usage of the stream")
    check(reasons[-1] is not None and not any(reasons[:-1]), "one reason, at the end")
    error = raises(openai.NotFoundError, lambda: client.completions.create(model="none", prompt="a"))
    check("none" in error.message and error.request_id, "the error names the model, and its request")
    error = raises(openai.BadRequestError, lambda: client.completions.create(model="lm", prompt="a", n=100000))
    check("`n`" in error.message, "the error names the field")
    raises(openai.NotFoundError, lambda: client.embeddings.create(model="lm", input="a"))
    packed = client.embeddings.create(model="encoder", input=["the fox", "a dog"])  # base64, as the client asks by itself
    floats = client.embeddings.create(model="encoder", input="the fox", encoding_format="float")
    check([one.index for one in packed.data] == [0, 1] and packed.usage.prompt_tokens == packed.usage.total_tokens > 0, "vectors")
    first, alone = packed.data[0].embedding, floats.data[0].embedding
    check(len(first) == len(alone) > 8 and max(abs(a - b) for a, b in zip(first, alone)) < 1e-4, "the same in either form")
    check(first != packed.data[1].embedding, "of each text its own")
    error = raises(openai.BadRequestError, lambda: client.embeddings.create(model="encoder", input="a", dimensions=4))
    check("dimensions" in error.message, "the error names the field")


class Colour(enum.Enum):
    red = "red"
    green = "green"


class Wheel(pydantic.BaseModel):
    spokes: int
    colour: Colour


class Bicycle(pydantic.BaseModel):
    wheels: list[Wheel]
    name: str | None
    is_new: bool


def test_chat():
    client = openai.OpenAI(base_url=url + "/v1", api_key="any", max_retries=0)
    messages = [{"role": "system", "content": "be good"}, {"role": "user", "content": [{"type": "text", "text": "the dog"}]}]
    asked = {"model": "lm", "messages": messages, "max_completion_tokens": 10, "temperature": 0, "logprobs": True, "top_logprobs": 3}
    whole = client.chat.completions.create(**asked)
    choice = whole.choices[0]
    check(choice.message.role == "assistant" and choice.finish_reason in ("stop", "length"), "a message")
    check(len(choice.logprobs.content) == whole.usage.completion_tokens or choice.finish_reason == "stop", "a token each")
    check(all(len(one.top_logprobs) == 3 and one.logprob <= one.top_logprobs[0].logprob + 1e-6 for one in choice.logprobs.content), "top tokens")
    events = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    check(events[0].choices[0].delta.role == "assistant" and events[0].choices[0].delta.content == "", "the role comes first")
    check(events[-1].choices == [] and counts(events[-1].usage) == counts(whole.usage), "usage comes last")
    check(whole.usage.prompt_tokens_details.cached_tokens == 0 and events[-1].usage.prompt_tokens_details.cached_tokens > 8, "what was read before")
    check(all(event.usage is None for event in events[:-1]), "and but once")
    parts = [event.choices[0] for event in events[:-1]]
    check("".join(part.delta.content or "" for part in parts) == choice.message.content, "the stream says what the whole response says")
    check(parts[-1].finish_reason == choice.finish_reason and not any(part.finish_reason for part in parts[:-1]), "one reason, at the end")
    check(parts[-1].delta.content is None, "apart from the last text")
    streamed = [one.token for part in parts if part.logprobs for one in part.logprobs.content]
    check(streamed == [one.token for one in choice.logprobs.content], "tokens of the stream")
    with client.chat.completions.stream(model="lm", messages=messages, max_tokens=6, temperature=0) as stream:
        read = "".join(event.delta for event in stream if event.type == "content.delta")
    check(read and choice.message.content.startswith(read), "the client's own reading of a stream")
    draws = client.chat.completions.create(model="lm", messages=messages, n=3, seed=4, max_tokens=6)
    check(len(draws.choices) == 3 and [one.index for one in draws.choices] == [0, 1, 2], "n")
    for seed in range(8):
        parsed = client.chat.completions.parse(model="lm", messages=messages, response_format=Bicycle, seed=seed, max_tokens=90)
        check(isinstance(parsed.choices[0].message.parsed, Bicycle), "an object of the class that was asked for")
        free = client.chat.completions.create(model="lm", messages=messages, response_format={"type": "json_object"}, seed=seed, max_tokens=60)
        check(isinstance(json.loads(free.choices[0].message.content), dict), "an object")
    error = raises(openai.BadRequestError, lambda: client.chat.completions.create(model="lm", messages=[]))
    check("messages" in error.message, "the error names the field")
    error = raises(openai.BadRequestError, lambda: client.chat.completions.create(model="lm", messages=messages, response_format={
        "type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "string", "pattern": "a"}}}))
    check("pattern" in error.message, "the error names the keyword")
    text = client.completions.create(model="lm", prompt="the", max_tokens=4, temperature=0, logprobs=2)
    found = text.choices[0].logprobs
    check(len(found.tokens) == len(found.token_logprobs) == len(found.text_offset) and "".join(found.tokens) == text.choices[0].text, "log probabilities of a text")


class Weather(pydantic.BaseModel):
    """What the weather is like somewhere."""
    place: Colour
    days: int


def test_tools():
    client = openai.OpenAI(base_url=url + "/v1", api_key="any", max_retries=0)
    messages = [{"role": "user", "content": "the dog"}]
    tools = [openai.pydantic_function_tool(Weather), {"type": "function", "function": {"name": "stop"}}]
    for choice in ("required", {"type": "function", "function": {"name": "Weather"}}):
        asked = {"model": "lm", "messages": messages, "tools": tools, "tool_choice": choice, "max_tokens": 70, "seed": 3}
        whole = client.chat.completions.create(**asked).choices[0]
        check(whole.finish_reason == "tool_calls" and len(whole.message.tool_calls) == 1, "a call")
        call = whole.message.tool_calls[0]
        check(call.function.name == "Weather" or (choice == "required" and call.function.name == "stop"), "of a tool that was asked for")
        if call.function.name == "Weather":
            Weather.model_validate_json(call.function.arguments)
        with client.chat.completions.stream(**asked) as stream:
            found = stream.get_final_completion().choices[0].message.tool_calls[0]
        check((found.function.name, found.function.arguments) == (call.function.name, call.function.arguments), "the stream has the same call")
    parsed = client.chat.completions.parse(model="lm", messages=messages, tools=tools[:1], tool_choice="required", max_tokens=70, seed=1)
    check(isinstance(parsed.choices[0].message.tool_calls[0].function.parsed_arguments, Weather), "arguments of the class that was asked for")
    after = messages + [whole.message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": "rain"}]
    client.chat.completions.create(model="lm", messages=after, max_tokens=2, tool_choice="none", tools=tools)
    error = raises(openai.BadRequestError, lambda: client.chat.completions.create(model="lm", messages=messages, tools=tools, tool_choice={"type": "function", "function": {"name": "x"}}))
    check("tool_choice" in error.message, "the error names the field")


def test_deepl():
    client = deepl.Translator("any", server_url=url)
    texts = client.translate_text(["the dog is hungry", "where is the station?"], target_lang="DE")
    check(len(texts) == 2 and all(one.text and one.detected_source_lang == "EN" for one in texts), "texts")
    check([one.code for one in client.get_source_languages()] == ["EN"], "source languages")
    check([one.code for one in client.get_target_languages()] == ["DE"], "target languages")
    check(not client.get_usage().any_limit_reached, "usage")
    error = raises(deepl.DeepLException, lambda: client.translate_text("x", target_lang="FR"))
    check("fr" in str(error), "the error names the language")
    return texts[0].text


def test_libretranslate(same):
    client = LibreTranslateAPI(url + "/")
    check(client.translate("the dog is hungry", "en", "de") == same, "the same text as DeepL's client has")
    check(client.languages() == [{"code": "en", "name": "English", "targets": ["de"]}], "languages")
    found = client.detect("the dog is hungry")
    check(sorted(one["language"] for one in found) == ["de", "en", "fr"], "languages that it may be in")
    check(abs(sum(one["confidence"] for one in found) - 100) < 0.01 and found == sorted(found, key=lambda one: -one["confidence"]), "the likeliest first, in percent")
    error = raises(urllib.error.HTTPError, lambda: client.translate("the dog is hungry", "en", "fr"))
    check(error.code == 400 and "fr" in json.load(error)["error"], "the error names the language")


test_openai()
test_chat()
test_tools()
test_libretranslate(test_deepl())
print(f"clients: {checks} checks passed")
