#!/usr/bin/env python3
"""Compares the Jinja interpreter with jinja2 as transformers 5.24 sets it up, on random templates.

    diff_jinja.py build/tools/jinja-tool [COUNT [SEED]]

Each template is made from a grammar, so that most of them mean something. Differences are printed: another text,
or a text where the reference raises, or an error (status 3) where the reference gives a text, or a refusal
(status 5) of something that is not in REFUSED. Refusals are counted by reason. Exit status 1 if there was a
difference.
"""
import collections
import json
import random
import re
import subprocess
import sys
import warnings

import jinja_reference

warnings.simplefilter("ignore")
VARIABLES = {
    "messages": json.dumps([
        {"role": "system", "content": "  You are\té. "},
        {"role": "user", "content": "Hi <b>&\n", "n": 3},
        {"role": "assistant", "content": "", "tool_calls": [
            {"function": {"name": "f", "arguments": {"x": 1.0, "y": [1, 2], "z": None, "t": True}}}]},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}]}]),
    "d": '{"b": 1, "a": {"items": [1]}, "C": "x"}', "l": "[3, 1, 2]", "words": '["b", "A", "c", "a"]',
    "s": '"hello World-x"', "e": '""', "n": "7", "f": "2.5", "t": "true", "none_": "null", "z": "0",
}
# What is refused, by the beginning of the message; the grammar makes few of these, so that most templates are compared.
REFUSED = re.compile("|".join([
    "tag '(call|with)'", "no filter 'batch'", "a macro in a loop", "'%' of a string", "no subscript", "more or other arguments",
    "attribute '(cycle|zfill|pop)'", "a format string", "attribute '.*' of a value of type (function|range)", "a subscript of a function",
    "printing a value of type (generator|function|Macro|Namespace|LoopContext|range)", "a value of type LoopContext",
    "'.*' of a string marked as safe", "(attribute|filter) '.*' of a string marked as safe", "printing a string marked as safe",
    "a slice of a value", "a subscript of a string marked", "a key of type", "comparing values", "values of type view", "'.*' of values of type",
    "method 'title' of a string that is not ASCII", "a number with a character", "a number that is", "an integer of more", "a quotient", "a power",
    "'round' with", "'int' with a base", "'dict' or 'namespace' of", "the other case of"]))
NAMES = ["messages", "d", "l", "words", "s", "e", "n", "f", "t", "none_", "z", "x", "y", "q", "m", "ns"]
STRINGS = ["''", "'a'", "'hello'", '"A b"', "'x-y'", "'role'", "'user'", "'1'", "'é'", "'  '", r"'a\nb'", "'4.5'"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "iterable",
         "sequence", "true", "false", "odd", "even", "callable"]
TESTS1 = ["divisibleby", "eq", "equalto", "ne", "in", "gt", "lt", "ge", "le", "=="]
FILTERS = ["trim", "tojson", "upper", "lower", "title", "capitalize", "length", "count", "first", "last", "list",
           "string", "int", "float", "abs", "reverse", "sort", "unique", "safe", "round", "items",
           "dictsort", "join", "indent", "default", "sum", "min", "max", "d", "safe|string", "safe|replace('a', 'b')", "safe|tojson"]
FILTERS1 = ["join(', ')", "default('d')", "default('d', true)", "d(1)", "replace('a', 'bb')", "replace('', '-', 2)",
            "tojson(indent=2)", "indent(2)", "indent(2, true)", "indent('> ', blank=true)", "trim('ab')",
            "map('upper')", "map(attribute='role')", "map(attribute='n', default=0)", "selectattr('role')",
            "selectattr('role', 'equalto', 'user')", "rejectattr('role', 'in', ['user'])", "select", "reject",
            "select('string')", "reject('none')", "select('odd')", "sort(reverse=true)", "sort(attribute='role')",
            "round(1)", "round(1, 'floor')", "int(3)", "dictsort(true)", "dictsort(by='value')", "map('length')", "join('-', 'role')",
            "map(attribute='content')", "sum(attribute='n')", "sum(start=2)", "unique(true)", "min(attribute='role')",
            "batch(2)", "tojson(ensure_ascii=true)", "tojson(sort_keys=true)",
            "tojson(separators=(',', ':'))", "length", "string", "list"]
METHODS = ["strip()", "lstrip()", "rstrip('x')", "split()", "split('l')", "split('o', 1)", "rsplit(' ', 1)",
           "startswith('h')", "endswith(('x', 'd'))", "upper()", "lower()", "title()", "capitalize()",
           "replace('l', 'L')", "join(words)", "find('o')", "rfind('l')", "count('l')", "index('h')",
           "splitlines()", "splitlines(true)", "items()", "keys()", "values()", "get('b')",
           "get('q', 5)", "zfill(4)", "format(l)",
           "pop()", "format(1, 2)", "rindex('l')", "rfind('')", "split(none, 1)", "rsplit('l')", "count('')", "endswith(())",
           "strip('hd')", "split('ll')", "rsplit(none, 2)", "replace('', '.')", "index(1)"]
ATTRIBUTES = ["role", "content", "a", "b", "C", "items", "get", "tool_calls", "n", "x", "upper"]
LOOP = ["index", "index0", "first", "last", "length", "revindex", "revindex0", "previtem", "nextitem", "zzz"]


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.loops = 0

    def pick(self, items):
        return self.r.choice(items)

    def atom(self):
        k = self.r.random()
        if k < 0.45:
            return self.pick(NAMES)
        if k < 0.6:
            return self.pick(STRINGS)
        if k < 0.72:
            return self.pick(["0", "1", "2", "7", "-1", "10", "1.5", "0.1", "1e3", "3.0"])
        if k < 0.82:
            return self.pick(["true", "false", "none", "True", "None"])
        if self.loops and k < 0.93:
            return "loop." + self.pick(LOOP)
        return self.pick(["[]", "{}", "()", "[1, 'a']", "(1, 2)", "{'a': 1}", "range(3)", "range(1, 7, 2)", "(n,)"])

    def args(self, depth):
        return ", ".join(self.pick(["", "", "", "*"]) + self.expression(depth) for _ in range(self.r.randrange(3)))

    def expression(self, depth):
        """Mostly of types that fit."""
        return self.wild(depth) if self.r.random() < 0.12 else self.typed(depth, self.pick(["text", "text", "number", "list", "truth"]))

    def typed(self, depth, kind):
        if self.r.random() < 0.03:
            return self.wild(depth)
        return {"text": self.typed_text, "number": self.typed_number, "list": self.typed_list, "truth": self.typed_truth}[kind](depth - 1)

    def typed_text(self, depth):
        e, k = self.typed, self.r.randrange(20)
        if depth <= 0 or k < 4:
            return self.pick(STRINGS + ["s", "s", "e", "messages[0].content", "messages[1]['content']", "d.C", "words[0]"])
        if k < 7:
            return f"{e(depth, 'text')} {self.pick(['+', '~', '~'])} {e(depth, 'text')}"
        if k < 10:
            return f"({e(depth, 'text')}).{self.pick(['strip()', 'lstrip()', 'rstrip()', 'upper()', 'lower()', 'title()', 'capitalize()', 'split()[0]'])}" if self.r.random() < 0.5 else \
                f"({e(depth, 'text')}).{self.pick(['strip', 'lstrip', 'rstrip'])}({e(0, 'text')})"
        if k < 13:
            return f"({e(depth, 'text')})|{self.pick(['trim', 'upper', 'lower', 'title', 'capitalize', 'tojson', 'indent', 'indent(2, true)', 'string', 'safe', 'reverse', 'replace(s, e)', 'default(1)', 'length'])}"
        if k < 14:
            return f"({e(depth, 'text')}).replace({e(0, 'text')}, {e(depth, 'text')})"
        if k < 15:
            return f"({e(depth, 'list')})|join({e(depth, 'text')})"
        if k < 16:
            return f"({e(depth, 'text')} if {e(depth, 'truth')} else {e(depth, 'text')})"
        if k < 17:
            return f"({e(depth, 'text')})[{self.slice()}]"
        if k < 18:
            return f"{self.pick(['l', 'd', 'messages', 'n', 'f', e(depth, 'list')])}|{self.pick(['string', 'tojson', 'tojson(indent=1)'])}"
        if k < 19:
            return f"m({e(depth, 'text')})"
        return f"({self.pick(['x', 'q', 'y', 'none_', 'd.zz', 'messages[2].content'])}|default({e(depth, 'text')}, true))"

    def typed_number(self, depth):
        e, k = self.typed, self.r.randrange(14)
        if depth <= 0 or k < 3:
            return self.pick(["0", "1", "2", "7", "n", "f", "z", "1.5", "-3", "0.1", "ns.a", "d.b", "t"] +
                             (["loop.index", "loop.index0", "loop.length", "loop.revindex"] if self.loops else []))
        if k < 7:
            return f"({e(depth, 'number')} {self.pick(['+', '-', '*', '/', '//', '%'])} {e(depth, 'number')})"
        if k < 9:
            return f"({e(depth, self.pick(['list', 'text']))})|{self.pick(['length', 'count'])}"
        if k < 10:
            return f"{self.pick(STRINGS + ['n', 'f'])}|{self.pick(['int', 'float', 'int(2)'])}"
        if k < 12:
            return f"({e(depth, 'number')})|{self.pick(['abs', 'round', 'round(1)', 'int', 'float', 'round(2, %r)' % self.pick(['ceil', 'floor'])])}"
        if k < 13:
            return f"({e(depth, 'text')}).{self.pick(['find', 'count', 'rfind'])}({e(0, 'text')})"
        return f"{self.pick(['l', '[1, 2.5, n]', 'range(4)'])}|{self.pick(['sum', 'max', 'min', 'first', 'last'])}"

    def typed_list(self, depth):
        e, k = self.typed, self.r.randrange(16)
        if depth <= 0 or k < 4:
            return self.pick(["l", "words", "messages", "range(4)", "d", "[]", "(1, 2)", "d.items()|list", "messages[:2]"])
        if k < 7:
            return f"[{', '.join(e(depth, self.pick(['text', 'number', 'text', 'list'])) for _ in range(self.r.randrange(4)))}]"
        if k < 8:
            return f"({e(depth, 'text')}).{self.pick(['split', 'rsplit'])}({self.pick(['', STRINGS[1], STRINGS[4], 'none, 1'])})"
        if k < 10:
            return f"({e(depth, 'list')})|{self.pick(['list', 'reverse', 'reverse|list', 'unique', 'unique|list', 'select', 'reject', 'map(%r)' % 'string', 'select(%r)' % 'defined'])}"
        if k < 12:
            return f"words|{self.pick(['sort', 'sort(reverse=true)', 'sort(case_sensitive=true)', 'map(%r)|list' % 'upper', 'select(%r, %r)|list' % ('gt', 'b')])}"
        if k < 14:
            return "messages|" + self.pick(["selectattr('role', 'equalto', 'user')|list", "map(attribute='role')|list", "rejectattr('content')|list",
                                            "selectattr('content', 'string')|map(attribute='content')|map('trim')|list", "sort(attribute='role')",
                                            "map(attribute='n', default=0)|list", "selectattr('tool_calls', 'defined')|list"])
        if k < 15:
            return f"(({e(depth, 'list')})|list)[{self.slice()}]"
        return f"(({e(depth, 'list')})|list + {self.pick(['l', '[1]', 'words'])})"

    def typed_truth(self, depth):
        e, k = self.typed, self.r.randrange(12)
        kind = self.pick(["text", "number"])
        if depth <= 0 or k < 2:
            return self.pick(["true", "false", "t", "x", "none_", "z", "s"] + (["loop.first", "loop.last"] if self.loops else []))
        if k < 5:
            return f"({e(depth, kind)} {self.pick(['==', '!=', '<', '>', '<=', '>='])} {e(depth, kind)})"
        if k < 6:
            return f"({e(depth, 'text')} {self.pick(['in', 'not in'])} {e(depth, self.pick(['text', 'list']))})"
        if k < 8:
            return f"({e(depth, 'truth')} {self.pick(['and', 'or'])} {e(depth, 'truth')})"
        if k < 9:
            return f"(not {e(depth, 'truth')})"
        if k < 11:
            return f"({e(depth, self.pick(['text', 'list', 'number']))} is {self.pick(['', 'not '])}{self.pick(TESTS[:14])})"
        return f"({e(depth, 'text')}).{self.pick(['startswith', 'endswith'])}({e(0, 'text')})"

    def wild(self, depth):
        if depth <= 0:
            return self.atom()
        k = self.r.randrange(100)
        a = lambda: self.wild(depth - 1)
        if k < 12:
            return self.atom()
        if k < 22:
            return f"{a()}|{self.pick(FILTERS)}"
        if k < 34:
            return f"{a()}|{self.pick(FILTERS1)}"
        if k < 42:
            return f"({a()}).{self.pick(METHODS)}" if self.r.random() < 0.4 else f"s.{self.pick(METHODS)}"
        if k < 48:
            return f"{self.pick(['messages[0]', 'messages[2]', 'd', 'd.a', 'ns'])}.{self.pick(ATTRIBUTES)}"
        if k < 54:
            return f"{a()} {self.pick(['+', '-', '*', '/', '//', '%', '~', '~', '+'])} {a()}"
        if k < 60:
            return f"{a()} {self.pick(['==', '!=', '<', '>', '<=', '>=', 'in', 'not in'])} {a()}"
        if k < 64:
            return f"{a()} {self.pick(['and', 'or'])} {a()}"
        if k < 67:
            return f"not {a()}"
        if k < 72:
            return f"{a()} is {self.pick(['', 'not '])}{self.pick(TESTS)}"
        if k < 75:
            return f"{a()} is {self.pick(TESTS1)}({a()})"
        if k < 79:
            return f"({a()} if {a()} else {a()})" if self.r.random() < 0.8 else f"({a()} if {a()})"
        if k < 84:
            return f"{self.pick(['s', 'l', 'messages', 'words', '(1, 2, 3)'])}[{self.slice()}]"
        if k < 88:
            return f"{self.pick(['d', 's', 'l', 'messages[0]', 'messages', 'x'])}[{a()}]"
        if k < 91:
            return f"[{a()}, {a()}]"
        if k < 93:
            return f"{{{self.pick(STRINGS)}: {a()}, {self.pick(STRINGS)}: {a()}}}"
        if k < 94:
            return f"({a()})"
        if k < 95:
            return f"{self.pick(['2', 'n', '1.5', '-3', '(2 ** 3)'])} ** {self.pick(['2', '3', '-1', '0.5', '0', 'z'])}"
        if k < 97:
            return f"m({self.args(depth - 1)})"
        if self.loops and k < 98:
            return f"loop.{self.pick(['cycle', 'index'])}({self.args(depth - 1)})"
        return f"-{self.atom()}"

    def slice(self):
        n = lambda: self.pick(["", "", "0", "1", "2", "-1", "-2", "5"])
        return f"{n()}:{n()}" + (f":{self.pick(['', '1', '2', '-1', '-2'])}" if self.r.random() < 0.3 else "")

    def tag(self, body):
        return self.pick(["{%", "{%", "{%-", "{%+"]) + " " + body + " " + self.pick(["%}", "%}", "-%}", "+%}"])

    def output(self, depth):
        return self.pick(["{{", "{{", "{{-", "{{+"]) + " " + self.expression(depth) + " " + self.pick(["}}", "}}", "-}}"])

    def text(self):
        return self.pick(["", "", " ", "\n", "  \n", "a", " b\n", "\n  ", "{", "<x>", "\t", "é\n\n", "{# c #}", "{#- c -#}\n",
                          "{% raw %} {{ r }}\n{% endraw %}\n", "{%- raw -%} {% endraw -%} "])

    def target(self):
        return self.pick(["x", "y", "q", "x", "y", "x, y", "ns.a", "ns.b", "n", "(x, q)"])

    def statement(self, depth):
        k = self.r.randrange(100)
        t, e = self.tag, self.expression
        if k < 25 or depth <= 0:
            return self.output(2)
        if k < 45:
            return t(f"set {self.target()} = {e(2)}" + (f", {e(1)}" if self.r.random() < 0.2 else ""))
        if k < 62:
            body = t(f"if {e(2)}") + self.body(depth - 1)
            if self.r.random() < 0.3:
                body += t(f"elif {e(1)}") + self.body(depth - 1)
            if self.r.random() < 0.4:
                body += t("else") + self.body(depth - 1)
            return body + t("endif")
        if k < 80:
            return self.loop(depth)
        if k < 85:
            if depth < 3 and self.r.random() < 0.9:  # elsewhere macros are refused
                return self.output(3)
            name = self.pick(["m", "m", "x"])
            parameters = self.pick(["", "x", "x, y=1", "x=n, y=x", "q, x=y, y=2", "x, y=l, q=s"])
            saved, self.loops = self.loops, 0
            body = self.body(depth - 1) + self.pick(["", "", "{{ x }}{{ y }}", "{{ q }}", "{{ n }}"])
            self.loops = saved
            return t(f"macro {name}({parameters})") + body + t("endmacro")
        if k < 88:
            saved, self.loops = self.loops, 0
            body = self.body(depth - 1)
            self.loops = saved
            return t("generation") + body + t("endgeneration")
        if k < 91:
            return t(f"filter {self.pick(['upper', 'trim', 'indent(2)|lower', 'length'])}") + self.body(depth - 1) + t("endfilter")
        if k < 93:
            return t(f"filter replace({self.expression(1)}, {self.expression(1)})") + self.body(depth - 1) + t("endfilter")
        if k < 96:
            return t(f"set {self.pick(['x', 'y', 'ns.a'])}") + self.body(depth - 1) + t("endset")
        if k < 97:
            return t(f"{self.pick(['with x = 1', 'call m()'])}")
        return t(self.pick(["set ns = namespace(a=1, b='x')", "set ns = namespace()", "set ns.q = ns"]))

    def loop(self, depth):
        t, e = self.tag, self.expression
        target = self.pick(["x", "x", "y", "q", "m", "x, y"])
        over = self.pick(["messages", "l", "words", "d", "range(4)", "s", self.typed(2, "list"), self.typed(3, "list")])
        if "," in target and self.r.random() < 0.9:
            over = self.pick(["d.items()", "d|dictsort", "[(1, 2), ('a', 'b')]", "d|items", "['ab', 'cd']"])
        test = f" if {e(1)}" if self.r.random() < 0.3 else ""
        saved, self.loops = self.loops, 1
        body = self.body(depth - 1)
        if self.r.random() < 0.2:
            body += t(f"if {e(1)}") + t(self.pick(["break", "continue"])) + t("endif") + self.body(depth - 1)
        self.loops = saved
        other = t("else") + self.body(depth - 1) if self.r.random() < 0.2 else ""
        return t(f"for {target} in {over}{test}") + body + other + t("endfor")

    def body(self, depth):
        return "".join(self.text() + self.statement(depth) + self.text() for _ in range(self.r.randrange(1, 3)))

    def template(self):
        made = self.pick(["{% set ns = namespace(a=1) %}"] * 8 + [""])
        made += self.pick(["{% macro m(x, y=2) %}<{{ x }}{{ y }}>{% endmacro %}", "{%- macro m(x=1, y=x) %}{{ x }}{{ y|default('none') }}{% endmacro -%} ", ""])
        made += "".join(self.text() + self.statement(3) for _ in range(self.r.randrange(1, 3))) + self.text()
        return made


def address(text):
    return text is not None and (" at 0x" in text or "<generator" in text or "object Macro" in text)


def main():
    tool, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    maker = Maker(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    templates = [maker.template() for _ in range(count)]
    lines = "".join(json.dumps({"template": t, "variables": VARIABLES}) + "\n" for t in templates)
    answers = subprocess.run([tool], input=lines.encode(), stdout=subprocess.PIPE, check=True).stdout.decode().split("\n")
    refused, counts, differences = collections.Counter(), collections.Counter(), 0
    for template, answer in zip(templates, answers):
        got, (want, error) = json.loads(answer), jinja_reference.render(template, VARIABLES)
        if isinstance(got, dict) and got["code"] == 5:
            refused[got["error"].split(": ")[0]] += 1
            counts["refused"] += 1
            if REFUSED.match(got["error"]):
                continue
        same = got == want if isinstance(got, str) else want is None or address(want)
        counts["same text" if same and isinstance(got, str) else "both fail" if same else "different"] += 1
        if not same and differences < 20:
            print("template:", json.dumps(template, ensure_ascii=False), "\n  got: ", json.dumps(got, ensure_ascii=False),
                  "\n  want:", json.dumps(want, ensure_ascii=False), repr(error))
        differences += not same
    for reason, n in refused.most_common(40):
        print(f"{n:6} {reason}")
    print(dict(counts))
    return differences > 0


if __name__ == "__main__":
    sys.exit(main())
