"""Unmodified clients of OpenAI, DeepL and LibreTranslate against a server: what they return, and their errors.

usage: clients.py URL    of a server with a translator "en-de" and a language model "lm"
"""
import sys

import deepl
import openai
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


def test_openai():
    client = openai.OpenAI(base_url=url + "/v1", api_key="any", max_retries=0)
    check({model.id for model in client.models.list().data} >= {"en-de", "lm"}, "models")
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
    check(usage == whole.usage, "usage of the stream")
    check(reasons[-1] is not None and not any(reasons[:-1]), "one reason, at the end")
    error = raises(openai.NotFoundError, lambda: client.completions.create(model="none", prompt="a"))
    check("none" in error.message and error.request_id, "the error names the model, and its request")
    error = raises(openai.BadRequestError, lambda: client.completions.create(model="lm", prompt="a", n=100000))
    check("`n`" in error.message, "the error names the field")
    raises(openai.NotFoundError, lambda: client.embeddings.create(model="lm", input="a"))


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
    check(client.languages() == [{"code": "en", "name": "en", "targets": ["de"]}], "languages")


test_openai()
test_libretranslate(test_deepl())
print(f"clients: {checks} checks passed")
