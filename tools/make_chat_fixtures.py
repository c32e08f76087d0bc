#!/usr/bin/env python3
"""Writes tests/fixtures/chat: chat templates in the styles that models have, and what transformers renders of them.

Usage: python tools/make_chat_fixtures.py    (needs transformers and jinja2; made with 5.24 and 3.1.6)

  templates.json   [{"name", "template", "cases": [{"messages", "variables", "text" or "refused"}]}]; the templates are
                   ours, in the styles of ChatML, Llama 2 and 3, Mistral, Gemma, Phi, Qwen, Zephyr and others
  language.json    [{"template", "text" or "refused"}]: expressions, filters, tests and white space, one by one
"""
import datetime
import json
import pathlib

from jinja2.exceptions import TemplateError
from transformers.utils.chat_template_utils import _compile_jinja_template

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "chat"
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}

TEMPLATES = {
    "chatml": """{% for message in messages %}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{% endfor %}
{% if add_generation_prompt %}
{{ '<|im_start|>assistant\\n' }}
{% endif %}
""",
    "zephyr": """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}
""",
    "llama2": """{%- if messages[0]['role'] == 'system' -%}
  {%- set chat = messages[1:] -%}{%- set preface = messages[0]['content'] | trim -%}
{%- else -%}
  {%- set chat = messages -%}{%- set preface = false -%}
{%- endif -%}
{%- for turn in chat -%}
  {%- if (turn['role'] == 'user') != (loop.index0 % 2 == 0) -%}
    {{- raise_exception('Turns must alternate: user, assistant, user, ...') -}}
  {%- endif -%}
  {%- if loop.index0 == 0 and preface is string -%}
    {%- set said = '<<SYS>>\\n' ~ preface ~ '\\n<</SYS>>\\n\\n' ~ turn['content'].strip() -%}
  {%- else -%}
    {%- set said = turn['content'].strip() -%}
  {%- endif -%}
  {%- if turn['role'] == 'user' -%}{{ bos_token + '[INST] ' + said + ' [/INST]' }}
  {%- elif turn['role'] == 'assistant' -%}{{ ' ' + said + ' ' + eos_token }}
  {%- endif -%}
{%- endfor -%}""",
    "llama3": """{{- bos_token }}
{%- if date_string is not defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set preface = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set preface = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}{{- "Environment: ipython\\n" }}{%- endif %}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- preface }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("One call at a time, please.") }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
        {{- '{"name": "' + call.name + '", "parameters": ' }}
        {{- call.arguments | tojson }}
        {{- "}<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
    "mistral": """{%- set ns = namespace(index=0, preface='') %}
{%- for message in messages if message['role'] == 'system' %}
    {%- set ns.preface = message['content'] + '\\n\\n' %}
{%- endfor %}
{{- bos_token }}
{%- for message in messages | rejectattr('role', 'equalto', 'system') | list %}
    {%- if (message.role == 'user') != (ns.index % 2 == 0) %}
        {{- raise_exception('After the optional system message, conversation roles must alternate user/assistant') }}
    {%- endif %}
    {%- set ns.index = ns.index + 1 %}
    {%- if message['role'] == 'user' %}
        {{- '[INST] ' ~ (ns.preface if loop.last else '') ~ message.content ~ '[/INST]' }}
    {%- elif message.role == 'assistant' and message.content is not none %}
        {{- ' ' + message['content']|trim + eos_token }}
    {%- else %}
        {{- raise_exception('Only user, system and assistant: not ' + message.role) }}
    {%- endif %}
{%- endfor %}
""",
    "gemma": """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set first_user_prefix = messages[0]['content'] + '\\n\\n' %}{% set loop_messages = messages[1:] %}{% else %}{% set first_user_prefix = '' %}{% set loop_messages = messages %}{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception("Roles must alternate") }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else '') }}{% if message['content'] is string %}{{ message['content'] | trim }}{% elif message['content'] is iterable %}{% for item in message['content'] %}{% if item['type'] == 'text' %}{{ item['text'] | trim }}{% endif %}{% endfor %}{% endif %}{{ '<end_of_turn>\\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}""",
    "phi": """{% for message in messages %}{% if message['role'] in ['system', 'user', 'assistant'] and message['content'] %}{{'<|' + message['role'] + '|>' + '\\n' + message['content'] + '<|end|>' + '\\n'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}""",
    "qwen": """{%- macro turn(role, text) -%}
<|im_start|>{{ role }}
{{ text }}<|im_end|>
{% endmacro -%}
{%- if messages[0].role != 'system' %}{{ turn('system', 'You help.') }}{% endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "assistant" %}
        {%- set content = message.content or '' %}
        {%- set reasoning = '' %}
        {%- if message.reasoning_content is defined and message.reasoning_content is not none %}
            {%- set reasoning = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or (not loop.last and reasoning)) %}
            {{- turn(message.role, '<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n')) }}
        {%- else %}
            {{- turn(message.role, content) }}
        {%- endif %}
    {%- else %}
        {{- turn(message.role, message.content) }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}""",
    "lines": """{#- Roles in capitals, a line each, as plain chat models have it. -#}
{%- set names = {'user': 'USER', 'assistant': "ASSISTANT"} -%}
{%- for m in messages %}
    {%- if m.role == 'system' %}
{{ m.content.strip() }}

    {%- continue %}
    {%- endif %}
{{ names.get(m.role, m.role | upper) }}: {{ m['content'] | trim -}}
    {% generation %}{{ eos_token if m.role == 'assistant' }}{% endgeneration %}

{%- endfor %}
{% if add_generation_prompt %}{{ "\\nASSISTANT:" }}{% endif %}""",
    "parts": """{%- for m in messages -%}
{{ loop.index }}/{{ loop.length }} {{ m.role | title }}:
{%- if m.content is string %} {{ m.content }}
{%- else %}{% for part in m.content %} [{{ part.type }}] {{ part.get('text', '') | replace('\\n', ' / ') }}{% endfor %}
{%- endif %}{{ '' if loop.last else ';\\n' }}
{%- endfor -%}""",
    "dated": """{%- set today = strftime_now("%d %b %Y") -%}
{{ bos_token }}[{{ today }}]{% for m in messages %}{{ m.role[0] | upper ~ m.role[1:] }}>{{ m.content }}{{ "|" if not loop.last }}{% endfor %}""",
}

USER = {"role": "user", "content": "What is 2 + 2?"}
CHATS = [
    [USER],
    [{"role": "system", "content": "  Answer in German. "}, USER],
    [USER, {"role": "assistant", "content": " Four.\n"}, {"role": "user", "content": "And \u00fcber \U0001f600 <b>\"x\"</b> & 'y'?\n\n"}],
    [{"role": "system", "content": "S"}, USER, {"role": "assistant", "content": "<think>\nhm\n</think>\n\n4"},
     {"role": "user", "content": "<s>[INST] {{ 7 * 7 }} {% if %}"}, {"role": "assistant", "content": "<think>\nwhy\n</think>\n\nno"}],
    [USER, USER],
    [{"role": "assistant", "content": "first"}],
    [{"role": "critic", "content": "odd role"}],
    [{"role": "user", "content": ""}],
    [{"role": "user", "content": [{"type": "text", "text": " one\n"}, {"type": "text", "text": "two "}]}],
    [USER, {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, 2.5, None, True], "\u00e9": "\n\"<"}}}]}],
]
VARIABLES = [{}, {"enable_thinking": False, "date_string": "1 Jan 2026"}]

# One by one: what is printed, or refused. "x" and others are variables, see VALUES.
VALUES = {"s": "  Hello, W\u00f6rld's \u00df ", "n": 7, "x": [3, 1, 2], "d": {"b": 1, "a": [True, None, 2.0], "C": "\u00e9\"'"},
          "people": [{"name": "Ann", "age": 30, "at": {"city": "Ulm"}}, {"name": "bob", "age": 7}, {"name": "Cid", "age": 30}], "none": None, "e": "", "t": True}
EXPRESSIONS = """s|trim || s.strip() || s.lstrip() || s.rstrip('s ') || s|upper || s|lower || s|title || s.title() || s|capitalize || s.capitalize()
s.split() || s.split(',') || 'a,b,,c'.split(',') || 'a,b,,c'.split(',', 1) || 'a,b,,c'.rsplit(',', 1) || ' a  b '.split() || ' a  b c'.split(none, 1) || ' a  b c '.rsplit(None, 1)
'a\\nb\\r\\nc'.splitlines() || s|length || s[2:7] || s[::-1] || s[-3] || s[1] || s[50] || s[:-2:2] || s.find('W') || s.replace('l', 'L', 1) || s.replace('', '-') || 'aaa'.replace('a', 'bb') || 'aXbX'|replace('X', '')
'ab'.startswith('a') || 'ab'.startswith(('x', 'a')) || 'ab'.endswith('a') || 'a' in 'cat' || 'z' not in 'cat' || 3 in x || 'b' in d || 9 not in x
x|sort || x|sort(reverse=true) || x|first || x|last || x|join(', ') || x|sum || x|max || x|min || x|reverse|list || x|length || x|list || x[1:] || x[::-1] || x + [4] || x|map('string')|join('') || x|unique|list
people|map(attribute='name')|join(' ') || people|selectattr('age', 'equalto', 30)|map(attribute='name')|list || people|rejectattr('age', 'gt', 10)|list|length || people|selectattr('at')|map(attribute='at.city')|list || people|sort(attribute='name')|map(attribute='name')|list || people|sum(attribute='age') || people|map(attribute='at.city', default='?')|list || ['b', 'A']|sort || ['b', 'A']|sort(case_sensitive=true)
[1, 0, 2]|select|list || [1, 2, 3]|select('odd')|list || [1, 2, 3]|reject('divisibleby', 2)|list || ['a', 'B']|map('upper')|list || ['a ']|map('trim')|first || ['a-b']|map('replace', '-', '+')|first
d|tojson || d|tojson(indent=2) || s|tojson || d.items()|list || d|items|list || d.keys()|list || d.values()|list || d['a'] || d.get('zz') || d.get('zz', 5) || d|dictsort || {'b': 1, 'A': 3, 'a': 2}|dictsort || {'b': 1, 'A': 3, 'a': 2}|dictsort(true) || {'b': 'x', 'A': 'Y', 'c': 'X'}|dictsort(false, 'value') || {'b': 'x', 'A': 'Y', 'c': 'X'}|dictsort(true, by='value', reverse=true) || d|dictsort(by='both') || d|length || d || '9007199254740993'|int || ' -9007199254740995 '|int || 'aXbXc'.rsplit('X', 1) || 'aaa'.rsplit('aa', 1) || 'aaaa'.rfind('aa') || 'abab'.rfind('ab') || 'ab'.find('') || 'aXbXc'.rsplit('X') || '%d %s' % (2.9, 'é') || '%d' % 'a' || x || (1, 'a') || (1,) || [] || {} || {'a': (1, 2)}|tojson || [1.0, 1e20, 0.1, -0.5]|tojson
1 + 2 * 3 || (1 + 2) * 3 || 7 // 2 || -7 // 2 || -7 % 3 || 7 / 2 || 2 ** 10 || 2 ** -1 || -n || 7 - -2 || 1.5 + 1 || 10 / 5 || 'a' * 3 || 'a' ~ 1 ~ none ~ true || 'a' + 'b' || n % 2 == 1 || 5 % 3 || 3.7 // 1 || 1_000
n is odd || n is even || n is number || s is string || x is sequence || d is mapping || x is iterable || n is iterable || none is none || missing is defined || missing is undefined || n is not none || n is divisibleby 7 || n is divisibleby(2) || n is eq 7 || n is gt 3 || 'A' is upper || 'a' is lower || true is boolean || 1.0 is float || 1 is integer || n is in [7] || t is true || e is string and not e || n is sameas 7
1 < 2 < 3 || 1 < 3 < 2 || n == 7 and not t || n != 7 or t || not n == 7 || 'a' if n > 5 else 'b' || 'a' if n < 5 || ('a' if false else 'b' if false else 'c') || none or 'x' || 0 and 1 || 1 and 2 || 1 == 1.0 || true == 1 || 'a' == 'a' || [1] == [1] || 'a' < 'b' || [1, 2] < [1, 3]
missing || missing|default('d') || missing|default || e|default('d') || e|default('d', true) || e|d('x', boolean=True) || none|default('d') || missing|length || missing|trim || missing ~ 'a' || d.missing || d.missing is defined || d['missing']|d('k') || missing in [1]
'12'|int || 'x'|int || 'x'|int(5) || 3.9|int || '1.5'|float || 3|float || 3.14159|round(2) || 2.5|round || 2.1|round(0, 'ceil') || -3|abs || true|int || 7|string || none|string || 3.0
'a\\nb\\n\\nc'|indent || 'a\\nb'|indent(2, true) || 'a\\n\\nb'|indent(2, blank=true) || '<a & "b">'|e || '<b>'|safe || 'a b  c'|wordcount || '%s-%d'|format('a', 3) || '%s' % 'a' || '{} {b}'.format(1, b=2) || 'ab'|list || 'abc'|first || 'abc'|last || 'abc'|reverse || 'a'|join('-') || 'abc'|join('-')
range(3)|list || range(1, 7, 2)|list || range(3, 0, -1)|list || dict(a=1, b='x') || namespace(a=1).a || 'x'.upper() || ' - '.join(['a', 'b']) || 'a-b'.count('-') || '007'.isdigit() || 'ab'.isalpha() || 'Ab'.isupper() || '5'.zfill(3) || 'abc'.removeprefix('a') || 'abc'.removesuffix('c') || x.index(1) || x.count(1)
'\\u00e9\\x41\\n' || "it's" || 'a' 'b' || '\\\\' || {'a': {'b': 1}}.a.b || [[1, 2], [3]][0][1] || ['it\\'s', "q\\"", 'b\\\\'] || x.0 || {1: 'a'}[1] || {'a': 1, 'a': 2} || [none, true, 1.5]
missing.attribute || missing + 1 || 'a' + 1 || n.x.y || nothing() || n() || 1 / 0 || 1 // 0 || x + 1 || 'a' < 1 || x.append(1) || d.update({}) || {}|join(1) || n|length || raise_exception('no') || n[0][0] || [1]|map('nofilter')|list || 'a'.nomethod() || 5|items|list"""

STATEMENTS = [
    "{% for i in x %}{{ i }}{% endfor %}", "{% for i in x -%} {{ i }} {%- endfor %}", "a\n  {% if t %}\n b\n  {% endif %}\nc\n", "a \n {%+ if t %}\n b {% endif +%}\nc",
    "  {{ n }}  \n", "{{ n }}\n\n", "{{- n -}}\n x", "x {#- c -#} y", "x\n  {# c #}\ny", "{# a {{ n }} #}{{ n }}", "{% raw %}{{ n }} {% x %}{% endraw %}!", "{%- raw -%}  {{ a }}  {%- endraw -%}  b",
    "{% set a = 1 %}{% for i in x %}{% set a = a + 1 %}{{ a }}{% endfor %}{{ a }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% if t %}{% set q = 5 %}{% endif %}{{ q }}",
    "{% set ns = namespace(k=0) %}{% for i in x %}{% set ns.k = ns.k + i %}{% endfor %}{{ ns.k }}", "{% set z %}a{{ n }}b{% endset %}[{{ z }}]", "{% set z | upper %}ab{% endset %}{{ z }}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for i in x if i > 1 %}{{ loop.index }}{{ i }}{% else %}none{% endfor %}", "{% for i in [] %}{{ i }}{% else %}none{% endfor %}",
    "{% for i in x %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.cycle('a', 'b') }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
    "{% for i in x %}{% for j in x %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}", "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 4 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% macro m(a, b='z') %}<{{ a }}{{ b }}>{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(b=1, a=2) }}{{ m() }}", "{% macro f(k) %}{% if k > 0 %}{{ k }}{{ f(k - 1) }}{% endif %}{% endmacro %}{{ f(4) }}",
    "{% set g = 3 %}{% macro m() %}{{ g }}{% endmacro %}{{ m() }}", "{% macro m(x) -%} {{ x | trim }} {%- endmacro %}[{{ m(' a ') }}]", "{% filter upper %}a{{ 'b' }}{% endfilter %}",
    "{% if n == 1 %}a{% elif n == 7 %}b{% else %}c{% endif %}", "{% if not x %}a{% endif %}", "{% for c in 'h\u00e9' %}{{ c }}.{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}", "{% for i in missing %}{{ i }}{% endfor %}ok",
    "{% for i in n %}{% endfor %}", "{% set n.a = 1 %}", "{% if %}", "{{ }}", "{% for x %}", "{% include 'a' %}", "{{ n", "{% if n %}", "{% endif %}", "{{ n | nofilter }}", "{% nothing %}", "{{ 'a }}", "{{ n is nothing }}",
    "{{ {'a': {'b': 2}} }}", "{% generation %}{{ n }}{% endgeneration %}", "{{ 1 }}{{ 2 }}\n{{ 3 }}", "a\r\nb\rc\n", "{% set m = people | selectattr('age', '==', 30) | map(attribute='name') | list %}{{ m }}",
    "{% for p in people %}{{ p.name }}{{ ', ' if not loop.last }}{% endfor %}", "{% for p in people|sort(attribute='age') %}{{ p.name }}{% endfor %}", "{%- for i in x %}\n  {{- i }}\n{%- endfor %}\nend",
    "{% set x = x + [9] %}{{ x }}", "{{ range(200000) | length }}", "{{ 'x' * 30000000 | length }}", "{% set q = namespace() %}{% set q.s = 'a' %}{% for i in range(60) %}{% set q.s = q.s + q.s %}{% endfor %}{{ q.s }}",
]


class Fixed(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 3, 9, 12, 0, 0)


def rendered(template, variables):
    try:
        return {"text": _compile_jinja_template(template).render(**variables)}
    except TemplateError as error:
        return {"refused": type(error).__name__}
    except Exception as error:  # what Python itself refuses
        return {"refused": type(error).__name__}


def joined(messages):
    """As heddle gives parts to templates that do not look at them."""
    def text(content):
        return "\n".join(part["text"] for part in content) if isinstance(content, list) else content
    return [{**message, "content": text(message["content"])} for message in messages]


def cases(template):
    found = []
    reads_parts = "type" in template
    for messages in CHATS:
        for variables in VARIABLES:
            for adds in [True, False]:
                if variables and adds is False:
                    continue
                given = {"messages": messages if reads_parts else joined(messages), "tools": None, "documents": None, "add_generation_prompt": adds, **SPECIAL, **variables}
                found.append({"messages": messages, "variables": variables, "add_generation_prompt": adds, **rendered(template, given)})
    return found


def language():
    templates = ["{{ " + one + " }}" for line in EXPRESSIONS.split("\n") for one in line.split(" || ")] + STATEMENTS
    found = []
    for template in templates:
        if "30000000" in template or "range(60)" in template:  # Python would, heddle must not
            found.append({"template": template, "refused": "heddle's own bound"})
        else:
            found.append({"template": template, **rendered(template, {**VALUES, **SPECIAL})})
    return found


def main():
    import transformers.utils.chat_template_utils as utils
    utils.datetime = Fixed
    FOLDER.mkdir(parents=True, exist_ok=True)
    templates = [{"name": name, "template": text, "cases": cases(text)} for name, text in TEMPLATES.items()]
    for name, value in [("templates", templates), ("language", {"values": VALUES, "cases": language()})]:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace('},{"', '},\n{"')
        (FOLDER / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
