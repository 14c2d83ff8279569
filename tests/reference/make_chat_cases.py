#!/usr/bin/env python3
"""Makes tests/data/chat/cases.jsonl: templates, variables (as JSON texts), and what transformers 5.24 renders.

    make_chat_cases.py > tests/data/chat/cases.jsonl

The templates are written for this test: some for one feature each, some in the manner of published models.
"""
import json

import jinja_reference

TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "Tells the \"weather\" of a place",
          "parameters": {"type": "object", "properties": {"place": {"type": "string"}, "days": {"type": "integer", "default": 1}},
                         "required": ["place"]}}}]
CHATS = {
    "one": [{"role": "user", "content": "Hello, who are you?"}],
    "system": [{"role": "system", "content": " You are terse. \n"}, {"role": "user", "content": "  Hi <there> & \"you\"\n"}],
    "turns": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"},
              {"role": "assistant", "content": "<think>\neasy\n</think>\n\n4"}, {"role": "user", "content": "Grüße, 世界 🙂"}],
    "tools": [{"role": "user", "content": "Weather in Paris?"},
              {"role": "assistant", "content": "", "tool_calls": [{"id": "call00001", "type": "function", "function": {
                  "name": "get_weather", "arguments": {"place": "Paris é", "days": 2, "exact": 1.0, "none": None}}}]},
              {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "{\"sky\": \"clear\"}"},
              {"role": "assistant", "content": "Clear."}, {"role": "user", "content": "Thanks"}],
    "parts": [{"role": "user", "content": [{"type": "text", "text": " Look: "}, {"type": "image"}, {"type": "text", "text": "what?"}]},
              {"role": "assistant", "content": [{"type": "text", "text": "A cat."}]}, {"role": "user", "content": "Sure?"}],
    "wrong": [{"role": "assistant", "content": "I begin"}, {"role": "assistant", "content": "and go on"}],
}
MODELS = {
    "headers": """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not tools_in_user is defined %}{%- set tools_in_user = true %}{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}{%- set date_string = strftime_now("%d %b %Y") %}{%- else %}{%- set date_string = "26 Jul 2024" %}{%- endif %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|head|>system<|/head|>\\n\\n" }}
{%- if tools is not none %}{{- "Environment: code\\n" }}{%- endif %}
{{- "Date: " + date_string + "\\n\\n" }}
{{- system_message }}{{- "<|eot|>" }}
{%- if tools_in_user and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first_user_message = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("No first message to put the tools into") }}
    {%- endif %}
    {{- '<|head|>user<|/head|>\\n\\n' -}}
    {%- for t in tools %}{{- t | tojson(indent=4) }}{{- "\\n\\n" }}{%- endfor %}
    {{- first_user_message + "<|eot|>"}}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|head|>' + message['role'] + '<|/head|>\\n\\n'+ message['content'] | trim + '<|eot|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}{{- raise_exception("One call at a time") }}{%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|head|>assistant<|/head|>\\n\\n{"name": "' + tool_call.name + '", "parameters": ' }}
        {{- tool_call.arguments | tojson }}{{- "}<|eot|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|head|>ipython<|/head|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}{{- message.content | tojson }}{%- else %}{{- message.content }}{%- endif %}
        {{- "<|eot|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|head|>assistant<|/head|>\\n\\n' }}{%- endif %}
""",
    "chatml-think": """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
    {{- "# Tools\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}{%- set content = message.content %}{%- else %}{%- set content = '' %}{%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or (not loop.last and reasoning_content)) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}{{- '\\n' }}{%- endif %}
                {%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}
                {{- '<tool_call>\\n{"name": "' }}{{- tool_call.name }}{{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}{{- tool_call.arguments }}{%- else %}{{- tool_call.arguments | tojson }}{%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<tool_response>\\n' }}{{- content }}{{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}""",
    "inst": """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, roles must alternate user/assistant") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" }}{%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("Tool call ids are of nine characters") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" + eos_token }}{%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS] {"content": ' + content|string + ", " }}{{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported, with the exception of an initial system message") }}
    {%- endif %}
{%- endfor %}
""",
    "turns": """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set prefix = messages[0]['content'] | trim + '\n\n' %}{% set rest = messages[1:] %}{% else %}{% set prefix = '' %}{% set rest = messages %}{% endif %}{% for message in rest %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<turn>' + role + '\n' + (prefix if loop.first else '') }}{% if message['content'] is string %}{{ message['content'] | trim }}{% elif message['content'] is iterable %}{% for item in message['content'] %}{% if item['type'] == 'image' %}{{ '<image>' }}{% elif item['type'] == 'text' %}{{ item['text'] | trim }}{% endif %}{% endfor %}{% else %}{{ raise_exception('Invalid content type') }}{% endif %}{{ '</turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<turn>model\n' }}{% endif %}""",
    "bars": """{% for message in messages %}
{% if message['role'] == 'system' and message['content'] %}
{{'<|system|>\n' + message['content'] + '<|end|>\n'}}
{% elif message['role'] == 'user' %}
{{'<|user|>\n' ~ message['content'] ~ '<|end|>\n'}}
{% elif message['role'] == 'assistant' %}
{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}
{% endif %}
{% endfor %}
{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}
""",
    "macros": """{%- macro render(value, depth=0) -%}
  {%- if value is mapping -%}{ {%- for k, v in value|dictsort %}{{ '\n' }}{{ '  ' * (depth + 1) }}{{ k }}: {{ render(v, depth + 1) }}{% if not loop.last %},{% endif %}{% endfor %}{{ '\n' ~ '  ' * depth }}}
  {%- elif value is string -%}{{ value|tojson }}
  {%- elif value is iterable -%}[{% for v in value %}{{ render(v, depth) }}{{ ', ' if not loop.last }}{% endfor %}]
  {%- else -%}{{ value }}{%- endif -%}
{%- endmacro -%}
{%- macro turn(role, text) -%}<{{ role }}>{{ text }}</{{ role }}>
{% endmacro -%}
{%- if tools %}{{ turn('tools', render(tools)) }}{% endif -%}
{%- for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}
{%- set text %}{% if m.tool_calls %}{{ render(m.tool_calls) }}{% else %}{% generation %}{{ m.content }}{% endgeneration %}{% endif %}{% endset %}
{{- turn(m.role|title, text) }}{% endfor %}""",
}
V = {"n": "7", "f": "2.5", "s": '"hello World"', "l": "[3, 1, 2]", "d": '{"b": 1, "a": {"items": [1]}, "C": 2}',
     "words": '["b", "A", "c", "a"]', "big": "9007199254740993", "u": '"naïve Ünï \\ud83d\\ude42"', "nul": '"a\\u0000b"'}
FEATURES = """
{{ n }} {{ f }} {{ s }} {{ l }} {{ d }} {{ big }} {{ u }} {{ nul|tojson }} {{ [nul, u] }}
{% for x in l %}{{ loop.index }}/{{ loop.length }}{{ loop.first }}{{ loop.last }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.revindex }}{{ loop.revindex0 }}, {% else %}none{% endfor %}
{% for x in [1, 2, 3, 4, 5] if x is odd %}{{ loop.index }}:{{ x }}/{{ loop.length }}{% if x == 3 %}{% continue %}{% endif %},{% endfor %}
{% for x in [] %}{% else %}E{% endfor %}{% for x in [1] %}{% continue %}{% else %}E{% endfor %}{% for x in [1, 2] %}{{ x }}{% break %}{% else %}E{% endfor %}
{% for a, (b, c) in [(1, (2, 3)), [4, [5, 6]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% set ns = namespace(a=1, b=[]) %}{% for x in l %}{% set ns.a = ns.a + x %}{% endfor %}{{ ns.a }} {{ ns.b }} {{ ns.zz is defined }}
{% set n.a = 1 %}
{% set ns = namespace() %}{% set ns._x = 1 %}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 3, %}{{ c }}{{ x }}
{% for i in [1, 2] %}{{ n }}{% endfor %}{% set n = 1 %}{{ n }}
{% if false %}{% set n = 3 %}{% endif %}{{ n }} {% for i in [1, 2] %}{% set n = n + i %}{{ n }}{% endfor %}{{ n }}
{% set x %}block {{ n }}{% endset %}{{ x|upper }}{% for i in l %}{% set y %} {{ i }}{{ x }} {% endset %}{{ y|trim }}{% endfor %}{{ y }}
{% macro f(a, b=2, c=a) %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ f(1) }}|{{ f(1, c=5) }}|{{ f() }}|{{ f(b=3, a=[1]) }}|{{ f is callable }}|{{ f(b=2) }}
{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}
{% macro f(a) %}{% endmacro %}{{ f(b=2) }}
{% macro f(a=b, b=1) %}{{ a }}{{ b }}{{ n }}{% set n = 2 %}{{ n }}{% endmacro %}{{ f() }}{{ f(x) }}{{ f(a=x, b=n) }}{{ n }}
{% macro m() %}{{ n }}{{ q }}{% endmacro %}{% for n in l %}{{ m() }}{% set q = n %}{{ m() }}{% endfor %}{% set q = 5 %}{{ m() }}
{% macro fact(k) %}{{ k * fact(k - 1)|int if k > 1 else 1 }}{% endmacro %}{{ fact(10) }}
{% macro inf() %}{{ inf() }}{% endmacro %}{{ inf() }}
{{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 2**3**2 }} {{ 1.5**2 }} {{ -n|abs }}
{{ 1e20 }} {{ 1e16 }} {{ 123456789.123 }} {{ 0.1 + 0.2 }} {{ 1e-5 }} {{ 0.0001 }} {{ 1/3 }} {{ 10/5 }} {{ 1e22 }} {{ 5e-324 }} {{ -0.0 }} {{ 1_000 }} {{ 00 }} {{ 1_0.5e1_0 }}
{{ 1 / 0 }}
{{ 1 < 2 < 3 }} {{ 1 < 2 > 3 }} {{ 'a' in 'abc' }} {{ 4 not in l }} {{ not 1 }} {{ 1 and 0 }} {{ '' or 'x' }} {{ x is defined }} {{ n is defined and n is number }} {{ 1 == 1.0 == true }} {{ 'b' in d }} {{ big == 9007199254740992.0 }}
{{ 1 < 'a' }}
{{ 1 in 'a' }}
{{ x }}{{ x|default('d') }}{{ ''|default('e', true) }}{{ none|default('f') }}{{ none|d('g', boolean=true) }}{{ d.x.y is defined if d.x }}
{{ x.y }}
{{ d.x.y }}
{{ x + 1 }}
{{ x() }}
{{ d.items() }} {{ d.keys()|list }} {{ d.values() }} {{ d.a['items'] }} {{ d.get('zz') }}{{ d.get('zz', 1) }}{{ d.get('b') }}{{ d.C }}{{ d['items'] is callable }}
{{ l.append(1) }}
{{ d|tojson }} {{ d|tojson(indent=2) }} {{ u|tojson(ensure_ascii=true) }} {{ l|tojson(separators=(',', ':')) }} {{ d|tojson(sort_keys=true) }} {{ {1: none, true: 2.0, none: []}|tojson }} {{ {}|tojson(indent=1) }} {{ "\\x7f\\x01<>&'\\u2028"|tojson }}
{{ x|tojson }}
{{ l|sort }} {{ l|sort(reverse=true) }} {{ l|max }} {{ l|min }} {{ l|sum }} {{ l|first }} {{ l|last }} {{ l|join('-') }} {{ l|reverse|list }} {{ l|length }} {{ []|first }} {{ words|sort }} {{ words|sort(case_sensitive=true) }} {{ words|unique|list }} {{ ['a', 'A', 'b']|unique|list }}
{{ [1, 'a']|sort }}
{{ d|dictsort }} {{ d|dictsort(true) }} {{ {'x': 2, 'y': 1}|dictsort(by='value') }} {{ d|items|list }}
{{ [1, 2]|map('string')|list }} {{ [0, 1, '', 'a']|select|list }} {{ [0, 1, 2]|reject('odd')|list }}
{{ [{'a': 1, 'b': {'c': 'x'}}, {'b': {}}]|map(attribute='b.c')|list|length }} {{ [{'a': 1}, {}]|map(attribute='a', default=0)|list }} {{ [{'a': 1}, {'a': 2}, {}]|selectattr('a')|list }} {{ [{'a': 1}, {'a': 2}]|rejectattr('a', 'gt', 1)|list }} {{ [{'a': 2}, {'a': 1}]|sort(attribute='a') }} {{ [{'a': 2}, {'a': 1}]|sum(attribute='a') }}
{% set g = l|map('string') %}{{ g|join }}{{ g|join }}{{ g is sequence }}{{ g is iterable }}
{{ s.split() }} {{ s.split('l') }} {{ s.split('l', 1) }} {{ s.rsplit('l', 1) }} {{ ' a  b c '.split(None, 1) }} {{ ' a  b c '.rsplit(None, 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ s.split(maxsplit=1) }} {{ 'x\\ny\\r\\nz\\n'.splitlines() }}
{{ s.split('') }}
{{ s.upper() }} {{ s.title() }} {{ s|title }} {{ s|capitalize }} {{ u|upper }} {{ u|lower }} {{ u|capitalize }} {{ s.replace('l', 'L') }} {{ s.replace('', '-') }} {{ s.replace('l', 'L', 1) }} {{ s|replace('o', 0) }} {{ s.find('o') }} {{ s.rfind('o') }} {{ u.find('Ü') }} {{ s.strip('hd') }} {{ s|trim('h') }}
{{ s[1:3] }} {{ s[::-1] }} {{ s[-3:] }} {{ s[:2] }} {{ s[0] }} {{ s[-1] }} {{ s[100] }} {{ u[-1] }} {{ u[2:4] }} {{ l[1:] }} {{ l[::2] }} {{ l[::-1] }} {{ (1, 2, 3)[:-1] }} {{ l[-1] }} {{ l[9] }} {{ l.0 }} {{ l['x'] }}
{{ l[1:'a'] }}
{{ 'abc'.startswith('ab') }}{{ 'abc'.startswith(('x', 'a')) }}{{ 'abc'.endswith('c') }}{{ 'abc'.count('') }}{{ 'aXbX'.count('X') }}{{ 'abc'.index('c') }}{{ 'abc'.endswith(()) }}{{ '<{}>{{}}{}'.format(n, 'x') }}{{ '{}'.format(none, 1) }}{{ ''.join(['a', 'b']) }}{{ 'ab'.join({'x': 1, 'y': 2}) }}{{ 'aXbX'.rindex('X') }}|
{{ x is defined }}{% for i in [1] %}{% for j in [1] %}{{ n }}{% endfor %}{% set n = i %}{{ n }}{% endfor %}{{ n }}{% macro g() %}{{ l }}{% endmacro %}{{ g() }}{% set l = 1 %}{{ g() }}
{{ '42'|int }} {{ '4.9'|int }} {{ 'x'|int(5) }} {{ '1.5'|float }} {{ 42.55|round }} {{ 42.55|round(1) }} {{ 42|round }} {{ 2.5|round }} {{ 3.1|round(0, 'ceil') }} {{ 3.19|round(1, 'floor') }} {{ -3|abs }} {{ '1e3'|int }} {{ 'inf'|int(8) }} {{ 2.675|round(2) }}
{{ '<a>'|safe }} {{ '<a>'|safe + '<b>&"' + "'" }} {{ '<c>' + '<a>'|safe + '<b>'|safe }} {{ ('<a>'|safe) ~ '<b>' }} {{ 'a\\nb'|indent }} {{ 'a\\n\\nb'|indent(2, true) }} {{ 'a\\n\\nb'|indent('>', blank=true) }} {{ ['<a>'|safe, n]|join('&') }} {{ l|tojson|safe }} {{ d|safe|length }}|
{{ [1, 2] + [3] }}{{ [1] * 3 }}{{ 'ab' * 2 }}{{ (1,) + (2,) }}{{ [1, [2]] == [1, [2]] }}{{ {'a': 1} == {'a': 1.0} }}{{ [1, 2] < [1, 3] }}{{ true + true }}{{ n ~ f ~ s ~ none ~ l }}
{{ (1,) }} {{ () }} {{ (1, 2) }} {{ {'a': 1, 2: none} }} {{ [true, false, none, 1.5, 'x'] }} {{ range(5)[2] }} {{ range(5)|list }} {{ range(1, 10, 3)|list }} {{ range(3, 0, -1)|list }} {{ dict(a=1, b=2) }} {{ dict({'x': 1}, y=2) }} {{ dict() }}
{{ range(100001) }}
{{ "a'b" }} {{ ["a'b", 'a"b', "é\\n\\t\\\\", '\\x00\\u200b'] }} {{ "\\x41\\u00e9\\U0001f642\\q" }} {{ 'a' 'b' "c" }}
{{ 5 is integer }}{{ 5.0 is float }}{{ true is boolean }}{{ d is mapping }}{{ l is sequence }}{{ s is string }}{{ l is iterable }}{{ none is none }}{{ n is divisibleby 7 }}{{ n is odd }}{{ 3 is even }}{{ 3 is eq 3 }}{{ 3 is gt 2 }}{{ 3 is in [3] }}{{ x is undefined }}{{ true is true }}{{ 0 is false }}{{ raise_exception is callable }}{{ n is not none }}
{{ n is foo }}
{{ n|foo }}
{{ strftime_now('%Y-%m-%d %H:%M:%S %b %B %A %j %f %%') }}
{{ raise_exception('no ' ~ n) }}
{{ 'a' if n > 3 else 'b' }}{{ 'a' if n > 30 }}|{{ ('a' if n > 30) is defined }}{{ 1 if 0 else 2 if 0 else 3 }}
{%- set s = 'x' -%}   {{- s -}}   y
>>   {%+ if true %}a{% endif %}   {% if true +%}
>>   b
>>   {% endif %}
{# c #}{#- c -#} x {#+ c +#} {% raw %} {{ raw }} {% if %} {% endraw %}{%- raw -%}  y  {%- endraw -%}  z
{% if n == 1 %}1{% elif n == 7 %}7{% else %}0{% endif %}
{{ [1, none, 'a']|select('none')|list }} {{ words|select('in', 'abc')|list }} {{ words|map('replace', 'a', 'b')|join }} {{ l|select('gt', 1)|map('string')|join(',') }} {{ words|reverse|first }}
{% break %}
{% for x in l %}{% set loop = 1 %}{% endfor %}
{% if n %}
{% endif %}
{% for x in l %}{% endif %}
{% foo %}
{{ 'unclosed }}
{{ (1, 2 }}
{{ }}
{{ 1 2 }}
{# open
{{ range(-9223372036854775807, 9223372036854775807, 4611686018427387904)|list }} {{ 'abc'[::-9223372036854775807 - 1] }}
x{#
x{% raw %}
{% for a, in l %}{% endfor %}
{{ 2.0 ** -44 }} {{ 2.0 ** 89 }} {{ 2.0 ** -1074 }} {{ 5.684341886080801e-14 }}
{% set ns = namespace() %}{% set ns.g = [ns]|map(attribute='g')|map('list') %}{{ ns.g|list }}
{% macro m(x, y=2, z=3) %}{{ x }}{{ y }}{{ z }} {% endmacro %}{{ m(*l) }}{{ m(0, *'ab', ) }}{{ m(*[], z=5, x=1) }}{{ m(z=5, *l[:1]) }}{{ 3 is eq(*[3]) }}{{ s|replace(*['o', '0']) }}{{ [m][0](*l|map('string')) }}
{% macro m(x) %}{{ x }}{% endmacro %}{{ m(*l) }}
{{ range(*l, *l) }}
{{ range(*l, 1) }}
{{ range(*1) }}
{{ l|sort(1) }} {{ l|sort(reverse=false) }}
{{ l|sort('x') }}
{{ d|dictsort(reverse=none) }}
{{ s.splitlines(1.0) }}
{{ d.items.type }}{{ d.items.type is defined }} {{ d.items['x'] is defined }} {{ d.items[0] is defined }} {{ s.upper._x is defined }}
{{ d.items.type.x }}
{{ strftime_now('a%zb%Zc%Ezd%-ze%#Zf %-d %s %p %E%Z %10') }}
""".strip("\n").split("\n")
JOINED = []
for line in FEATURES:  # ">>": goes on with the line before
    if line.startswith(">>"):
        JOINED[-1] += "\n" + line[2:]
    else:
        JOINED.append(line)


def put(name, template, variables):
    text, error = jinja_reference.render(template, variables)
    case = {"name": name, "template": template, "variables": variables}
    if error is None:
        case["text"] = text
    else:
        case["error"] = str(error)
    print(json.dumps(case, ensure_ascii=False))


def main():
    for name, template in MODELS.items():
        for chat, messages in CHATS.items():
            variables = {"messages": json.dumps(messages), "bos_token": '"<s>"', "eos_token": '"</s>"', "documents": "null",
                         "tools": json.dumps(TOOLS) if chat == "tools" else "null",
                         "add_generation_prompt": "false" if chat == "system" else "true"}
            put(f"{name}, {chat}", template, variables)
    put("no thinking", MODELS["chatml-think"], {"messages": json.dumps(CHATS["turns"]), "enable_thinking": "false",
                                                "add_generation_prompt": "true"})
    for n, template in enumerate(JOINED):
        put(f"feature {n + 1}", template, V)


main()
