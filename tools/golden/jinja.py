"""What chat templates print, from the compiler of transformers: one small template for each feature of the language.

run: python tools/golden/jinja.py internal/demo/model/chat_template.jinja internal/jinja/testdata/features.json
"""
import datetime
import json
import sys

import jinja2
import transformers
from transformers.utils import chat_template_utils as utils

JINJA, TRANSFORMERS = "3.1.6", "5.23.0"


class Frozen(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 3, 5, 7, 8, 9, 123456)


utils.datetime = Frozen

D = {"b": 1, "a": [1, 2.5, "x", None, True], "items": "key", "n": {"k": "v"}}
MSGS = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello <b>"}, {"role": "user", "content": "é😀\n'q' \"w\""}]
L = [3, 1, 2]

CASES = [
    # whitespace control
    ("  {% if true %}  \n a \n  {% endif %}\nb", {}), ("a  {%- if true -%}  b  {%- endif -%}  c", {}), ("a\n  {%+ if true %}\n x{% endif +%}\ny", {}),
    ("{# c #}\nx\n  {# d #}\ny {# e -#}  \n z", {}), ("{{ 1 }}\n{{ 2 }}\n", {}), ("a\n\n", {}), ("a\r\nb\rc", {}), ("{{- 1 -}}  x  {{- 2 }}", {}),
    ("{% raw %}\n {{ x }} {% endraw %}\nz", {}), ("a {%- raw -%}  {% y %}  {%- endraw -%} b", {}), ("  {% raw %}x{% endraw %}", {}), ("x {% set a = 1 %} y", {}),
    ("{% if true %}\n\n  a\n  {%- endif %}\nb", {}), ("{{ '{{' }} {{ '}}' }} {{ {'a': {}} }}", {}), ("{% for i in [1,2] %}\n  {{ i }}\n{% endfor %}\n", {}),
    # literals and strings
    (r"""{{ 'a\n\t\\\'\"\x41\u00e9\101\q' }}{{ "b" 'c' }}""", {}), ("{{ 1_000 }} {{ 0x1F }} {{ 0b11 }} {{ 0o17 }} {{ 1.5e3 }} {{ 1e16 }} {{ 1e-5 }} {{ 123456789012345678901234567890 }}", {}),
    ("{{ [1, 'a', none, true, 1.0] }} {{ (1,) }} {{ () }} {{ {'a': 1, 2: 'b'} }}", {}), ("{{ True }} {{ None }} {{ false }}", {}),
    ("{{ d }} {{ msgs[2] }}", {"d": D, "msgs": MSGS}), ("{{ ['a\\'b', \"c\\\"d\", 'e\\nf', '\\x07', '\u200b', 'é'] }}", {}),
    ("{{ 0.1 + 0.2 }} {{ 1.0 }} {{ 1e22 }} {{ 1.5e-7 }} {{ -0.0 }} {{ 100000.0 }} {{ 1234567890123456.0 }} {{ 12345678901234567.0 }}", {}),
    # arithmetic
    ("{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 4 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }}", {}),
    ("{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1 + true }} {{ 'a' * 3 }} {{ 2 * 'ab' }} {{ [1] * 2 }} {{ [1] + [2] }} {{ (1,) + (2,) }}", {}),
    ("{{ 9223372036854775807 + 1 }} {{ 2 ** 70 }} {{ 2 ** 70 // 3 }} {{ -(2 ** 64) % 7 }}", {}), ("{{ 'a' ~ 1 ~ none ~ 1.0 ~ [1] }}", {}),
    ("{{ 1 / 0 }}", {}), ("{{ 'a' + 1 }}", {}), ("{{ 1 + x }}", {}), ("{{ -'a' }}", {}), ("{{ + 3 }}{{ - -3 }}", {}),
    # comparison and logic
    ("{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ 1 == true }} {{ 'a' < 'b' }} {{ [1,2] < [1,3] }} {{ none == false }}", {}),
    ("{{ 'a' in 'abc' }} {{ 1 in [1] }} {{ 'b' in d }} {{ 'z' not in d }} {{ 1 not in [1] }}", {"d": D}), ("{{ 'a' < 1 }}", {}), ("{{ 1 in 'a' }}", {}), ("{{ 'a' in none }}", {}),
    ("{{ not 1 or 2 and 3 }} {{ 0 or [] or 'x' }} {{ 1 and 0 }} {{ not not 1 }} {{ 1 if 0 }}| {{ 1 if 0 else 2 if 1 else 3 }}", {}),
    ("{{ (a if b else c) }} {{ x is defined and x.y }}", {"a": 1, "b": 0, "c": 3}), ("{{ d == {'b': 1} }} {{ [1, [2]] == [1.0, [2]] }} {{ x == y }}", {"d": {"b": 1}}),
    # access
    ("{{ d.items() }} {{ d['items'] }} {{ d.n.k }} {{ d['n']['k'] }} {{ d.a.0 }} {{ d.a[-1] }} {{ d.zz }}|{{ d['zz'] }}|{{ d.a[9] }}|", {"d": D}),
    ("{{ d.zz.y }}", {"d": D}), ("{{ x.y }}", {}), ("{{ x[0] }}", {}), ("{{ 'abc'[1] }} {{ 'abc'[-1] }} {{ 'aé😀'[2] }} {{ 'abc'[7] }}|", {}),
    ("{{ l[1:] }} {{ l[:-1] }} {{ l[::-1] }} {{ l[::2] }} {{ l[5:] }} {{ l[-2:] }} {{ 'hello'[1:3] }} {{ 'hello'[::-1] }} {{ (1,2,3)[1:] }} {{ l[-9:9:2] }} {{ l[2:0:-1] }}", {"l": L}),
    ("{{ l['x':] }}|{{ l[::0] }}", {"l": L}), ("{{ none.x }}|{{ 1 .x }}|", {}), ("{{ d.get('b') }} {{ d.get('q') }} {{ d.get('q', 5) }} {{ d.keys()|list }} {{ d.values()|list|length }}", {"d": D}),
    ("{{ d.keys() }} {{ {'a': 1}.values() }}", {"d": D}), ("{{ {'a': 1}.items()[0] }}|", {}),
    # for
    ("{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}", {"l": L}),
    ("{% for i in [] %}x{% else %}none{% endfor %}{% for i in x %}x{% else %}undef{% endfor %}", {}), ("{% for i in none %}{% endfor %}", {}), ("{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}", {"d": D}),
    ("{% for k in d %}{{ k }}{% endfor %}{% for c in 'aé' %}[{{ c }}]{% endfor %}", {"d": D}), ("{% for i in l if i > 1 %}{{ loop.index }}:{{ i }}/{{ loop.length }} {% else %}e{% endfor %}", {"l": L}),
    ("{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}", {}),
    ("{% set x = 1 %}{% for i in [1,2] %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}", {}), ("{% set ns = namespace(x=1, y='a') %}{% for i in [1,2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y }}{{ ns.z }}", {}),
    ("{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", {}), ("{% for a, b in [(1, 2, 3)] %}{% endfor %}", {}),
    ("{% for n in t recursive %}{{ n.v }}{{ loop.depth }}{% if n.c %}({{ loop(n.c) }}){% endif %}{% endfor %}", {"t": [{"v": 1, "c": [{"v": 2}, {"v": 3, "c": [{"v": 4}]}]}]}),
    ("{% for i in [1,1,2] %}{{ loop.changed(i) }}{{ loop.cycle('a','b') }}{% endfor %}", {}), ("{% for i in [1] %}{% for j in [1,2] %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}", {}),
    ("{% for m in msgs|selectattr('role', 'eq', 'user') %}{{ loop.index }}{{ loop.last }}{{ m.content }}{% endfor %}", {"msgs": MSGS}),
    # set, with, if
    ("{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 1, 2 %}{{ c }}", {}), ("{% set x %}a {{ 1 }}{% endset %}[{{ x }}]{% set y | upper | trim %} b {% endset %}[{{ y }}]", {}),
    ("{% if true %}{% set q = 1 %}{% endif %}{{ q }}", {}), ("{% with a = 1, b = 2 %}{{ a }}{{ b }}{% set z = 3 %}{% endwith %}{{ z }}|{{ a }}", {}), ("{% if 0 %}a{% elif 1 %}b{% else %}c{% endif %}", {}),
    ("{% set d.x = 1 %}", {"d": {}}), ("{% set ns = namespace() %}{% set ns._x = 1 %}", {}), ("{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns['b'] }}", {}), ("{% set x = x|default(3) %}{{ x }}", {}),
    # macros
    ("{% macro f(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(b=5, a=4) }}{{ f() }}", {}), ("{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}", {}), ("{% macro f(a) %}{{ a }}{% endmacro %}{{ f(z=2) }}", {}),
    ("{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, x=3) }}", {}), ("{% macro f(x) %}<{{ caller(x) }}>{% endmacro %}{% call(y) f(3) %}in {{ y }}{% endcall %}", {}), ("{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}", {}),
    ("{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", {}), ("{% macro f() %}{{ z }}{% endmacro %}{% set z = 4 %}{{ f() }}{{ f.name }}{{ f.arguments }}", {}), ("{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(3) }}", {}),
    ("{% macro f(x) %}  {{ x }}  {% endmacro %}[{{ f(1)|trim }}]{{ f is callable }}", {}), ("{{ x() }}", {}), ("{{ 'a'() }}", {}), ("{% set a = [1, 2] %}{{ dict(b=1, **{'c': 2}) }}{{ range(*a)|list }}", {}),
    # globals
    ("{{ range(3) }} {{ range(1, 10, 3)|list }} {{ range(5, 0, -2)|list }} {{ range(3)|length }} {{ range(9)[2] }}", {}), ("{{ range(200000) }}", {}), ("{{ dict(a=1) }} {{ dict([('x', 1)]) }}", {}),
    ("{{ raise_exception('no ' ~ 1) }}", {}), ("{{ strftime_now('%d %b %Y %H:%M:%S %A %B %j %y %I %p %a %m %% %-d %e %U %w') }}", {}), ("{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}", {}),
    ("{% set j = joiner('|') %}{% for i in [1,2,3] %}{{ j() }}{{ i }}{% endfor %}", {}), ("{% generation %}a{{ 1 }}{% endgeneration %}b", {}), ("{% filter upper %}a{{ 'b' }}{% endfilter %}", {}), ("{% block x %}a{% endblock %}", {}), ("{% print 1, 2 %}", {}),
    # the sandbox
    ("{{ l.append(1) }}", {"l": [1]}), ("{{ l.append is defined }}", {"l": [1]}), ("{{ d.update({}) }}", {"d": {}}), ("{{ ''.__class__ }}|", {}), ("{{ ''.__class__.__mro__ }}", {}), ("{{ d.pop('b') }}", {"d": D}), ("{{ '{0.__class__}'.format(1) }}", {}),
    # undefined
    ("[{{ x }}] {{ x is defined }} {{ x|default('d') }} {{ x|length }} {{ x|list }} {{ not x }} {{ x ~ 'a' }}", {}), ("{{ x|int }}", {}), ("{{ x|upper }}|{{ x|join }}|{{ x|first }}|", {}), ("{{ x|tojson }}", {}), ("{{ [x] }}", {}),
    # tojson
    ("{{ d|tojson }} {{ msgs|tojson }}", {"d": D, "msgs": MSGS}), ("{{ d|tojson(indent=2) }}", {"d": D}), ("{{ d|tojson(indent=4, sort_keys=true) }}", {"d": {"b": {"z": [], "y": {}}, "a": [1]}}), ("{{ 'é<>&\\'' |tojson }} {{ 'é😀\\x7f'|tojson(ensure_ascii=true) }}", {}),
    ("{{ d|tojson(separators=(',', ':')) }}", {"d": D}), ("{{ [1.0, 1e20, 0.1, 3, true, none, 'a\\u2028b\\x00\\x1f'] | tojson }} {{ (1, 2)|tojson }} {{ {1: 2, none: 3, true: 4}|tojson }}", {}), ("{{ d.keys()|tojson }}", {"d": D}), ("{{ x|map('upper')|tojson }}", {"x": ["a"]}),
    ("{{ big|tojson }} {{ big }}", {"big": [18446744073709551616, -1.5e300]}), ("{{ 'a'|tojson|safe }}", {}), ("{{ [[]]|tojson(indent=1) }}", {}),
    # text filters
    ("{{ ' a b '|trim }}|{{ 'xax'|trim('x') }}|{{ 'aBc'|upper }}{{ 'aBc'|lower }}{{ 'aBc dE'|capitalize }}{{ \"it's a-b (c\"|title }}", {}), ("{{ 'aaa'|replace('a', 'b', 2) }} {{ 1|string }} {{ 'a b'|wordcount }} {{ 'ab'|reverse }} {{ 'abc'|length }}", {}),
    ("{{ 'a\nb\n\nc'|indent }}|{{ 'a\nb'|indent(2, true) }}|{{ 'a\n\nb'|indent(1, false, true) }}|{{ 'a\nb'|indent('> ') }}", {}), ("{{ '%s is %d and %.2f %5s|%-5s|%05d %x %r %%' % ('a', 3.7, 2, 'r', 'l', 42, 255, 'q') }}", {}), ("{{ '%s'|format(1) }} {{ '%(a)s' % {'a': 2} }}", {}),
    ("{{ '%s' % 'a' }} {{ '%s %s' % ('a',) }}", {}), ("{{ '%d' % 'a' }}", {}), ("{{ '<a>&'|e }} {{ '<a>'|safe }} {{ '<'|safe + '<' }} {{ '<'|escape|escape }} {{ '<'|e ~ '<' }}", {}), ("{{ 'a b c d e f g'|truncate(9) }} {{ 'abcdefghijklmnop'|truncate(5, true, '..', 0) }}", {}),
    ("{{ 'x'|center(5) }}|{{ 'xy'|center(5) }}|{{ 'a b/c?'|urlencode }} {{ '<p>a  b</p>'|striptags }} {{ {'a': 1, 'b': none}|xmlattr }}", {}),
    ("{{ '<b>a &amp; b</b> <!-- <x> --> &lt;c&gt; <d'|striptags }}|{{ '<!-- a > b'|striptags }}|{{ '<i>x'|safe|striptags + '<' }}", {}),
    ("{{ 1|filesizeformat }} {{ 0|filesizeformat }} {{ 999|filesizeformat }} {{ 1000|filesizeformat }} {{ 1024|filesizeformat(true) }} {{ 123456789|filesizeformat }} {{ 1e30|filesizeformat(binary=true) }} {{ '2500'|filesizeformat }} {{ 999999|filesizeformat }} {{ -5|filesizeformat }}", {}), ("{{ 'x'|filesizeformat }}", {}),
    ("{{ {'b': [1, 'x'], 'a': {'d': none, 'c': (1,)}}|pprint }} {{ 'q'|pprint }} {{ 1.0|pprint }}", {}),
    # numbers
    ("{{ '42'|int }} {{ ' 4.7 '|int }} {{ 'x'|int }} {{ 'x'|int(9) }} {{ 'ff'|int(0, 16) }} {{ 3.9|int }} {{ '1.5'|float }} {{ 'x'|float }} {{ none|int }} {{ true|int }} {{ '1_0'|int }}", {}), ("{{ -3|abs }} {{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 7|round }} {{ 1234.5|round(-2) }} {{ 1.21|round(1, 'ceil') }} {{ 1.29|round(1, 'floor') }}", {}),
    # sequence filters
    ("{{ l|sort }} {{ l|sort(reverse=true) }} {{ ['b', 'A', 'a']|sort }} {{ ['b', 'A', 'a']|sort(case_sensitive=true) }} {{ l|first }} {{ l|last }} {{ l|sum }} {{ l|min }} {{ l|max }} {{ l|join('-') }} {{ l|reverse|list }}", {"l": L}),
    ("{{ msgs|map(attribute='role')|list }} {{ msgs|map(attribute='zz', default='d')|join(',') }} {{ ['a', 'b']|map('upper')|join }} {{ l|map('string')|list }}", {"msgs": MSGS, "l": L}), ("{{ msgs|map(attribute='role') is iterable }} {{ [] | select | list }} {{ ([]|select) and 1 }}", {"msgs": MSGS}),
    ("{{ l|select('odd')|list }} {{ l|reject('odd')|list }} {{ l|select('>', 1)|list }} {{ [0, 1, '']|select|list }} {{ msgs|rejectattr('role', 'equalto', 'user')|list|length }} {{ msgs|selectattr('zz')|list }} {{ none|select|list }}", {"l": L, "msgs": MSGS}), ("{{ l|select('odd')|length }}", {"l": L}),
    ("{{ ['a', 'A', 'b']|unique|list }} {{ [1, 2, 3, 4, 5]|batch(2)|list }} {{ [1, 2, 3]|batch(2, 'x')|list }} {{ [1, 2, 3, 4, 5]|slice(2)|list }} {{ d|dictsort }} {{ {'b': 1, 'A': 2}|dictsort(by='value', reverse=true) }}", {"d": {"b": 1, "A": 2}}), ("{{ d|items|list }} {{ x|items|list }}", {"d": D}), ("{{ 3|items|list }}", {}), ("{{ d|list }}|{{ 'ab'|list }}", {"d": D}),
    ("{% for k, g in msgs|groupby('role') %}{{ k }}:{{ g|length }} {% endfor %}", {"msgs": MSGS}), ("{{ msgs|sort(attribute='role,content')|map(attribute='content')|list }} {{ msgs|sum(attribute='zz') }}", {"msgs": MSGS[:0]}), ("{{ 1|first }}", {}), ("{{ []|first }}|{{ []|max }}|{{ d|attr('zz') }}|", {"d": D}), ("{{ 1|length }}", {}), ("{{ 'x'|nosuch }}", {}), ("{% if 0 %}{{ 'x'|nosuch }}{% endif %}ok", {}),
    # tests
    ("{{ 1 is number }} {{ 1 is integer }} {{ 1.0 is float }} {{ true is integer }} {{ true is boolean }} {{ true is number }} {{ 'a' is string }} {{ [] is sequence }} {{ {} is mapping }} {{ {} is sequence }} {{ 1 is iterable }} {{ none is none }}", {}),
    ("{{ 3 is odd }} {{ 3 is even }} {{ 9 is divisibleby 3 }} {{ 1 is sameas 1 }} {{ true is sameas true }} {{ 1 is sameas true }} {{ 'a' is in ['a'] }} {{ 1 is not in [1] }} {{ 'A' is upper }} {{ 'a' is lower }} {{ '' is lower }} {{ 1 is eq 1 }} {{ 1 is lt 2 }} {{ 'x' is filter }} {{ 'upper' is filter }} {{ x is undefined }} {{ x is not defined }} {{ d.items is callable }}", {"d": D}),
    ("{{ false is false }} {{ 0 is false }} {{ 1 is true }} {{ 'a' is defined and 'b' }} {{ 3 is ge(2) }} {{ d.items() is sequence }} {{ range(2) is sequence }} {{ l|map('abs') is sequence }}", {"d": D, "l": L}), ("{{ 1 is nosuch }}", {}),
    # string methods
    ("{{ ' a '.strip() }}|{{ 'xxa'.lstrip('x') }}|{{ 'axx'.rstrip('x') }}|{{ 'a,b,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a b c'.split(' ', 1) }} {{ 'a b c'.rsplit(' ', 1) }} {{ ' a b  c '.split(none, 1) }} {{ 'a\nb\r\nc'.splitlines() }}", {}),
    ("{{ 'abc'.startswith('a') }} {{ 'abc'.startswith(('x', 'a')) }} {{ 'abc'.endswith('bc') }} {{ 'abc'.find('c') }} {{ 'abc'.find('z') }} {{ 'éabc'.rfind('c') }} {{ 'aXbX'.count('X') }} {{ 'abc'.index('b') }} {{ 'a-b-c'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'abc'.startswith('b', 1) }}", {}),
    ("{{ 'ab'.upper() }} {{ \"they're bill's\".title() }} {{ 'aB'.swapcase() }} {{ 'hello'.capitalize() }} {{ 'a'.zfill(3) }} {{ '-5'.zfill(4) }} {{ 'x'.center(4, '*') }} {{ 'x'.ljust(3) }}| {{ 'x'.rjust(3) }} {{ '-'.join(['a', 'b']) }} {{ 'abab'.replace('a', 'x', 1) }} {{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.y'.removesuffix('.y') }}", {}),
    ("{{ '12'.isdigit() }} {{ 'a1'.isalnum() }} {{ 'ab'.isalpha() }} {{ ' '.isspace() }} {{ 'A'.isupper() }} {{ 'a'.islower() }} {{ ''.isdigit() }} {{ 'a\tb'.expandtabs(4) }}", {}), ("{{ '{} {1} {a} {a!r:>5} {b[0]} {c.d} {{}} {x:05.1f} {n:,} {n:x}'.format('z', 'y') }}", {}),
    ("{{ '{} {a} {a!r:>5} {b[0]} {c[d]} {{}} {x:05.1f} {n:,} {n:x} {y:<4}| {y:^5}| {n:+d}'.format('z', a='q', b=[1], c={'d': 2}, x=3.14159, n=1234, y='s') }}", {}), ("{{ 'abc'.index('z') }}", {}), ("{{ '-'.join([1]) }}", {}), ("{{ 'a'.split('') }}", {}), ("{{ [1, 2, 1].count(1) }} {{ [1, 2].index(2) }} {{ (1, 2).index(2) }}", {}), ("{{ 'ß'.upper() }} {{ 'İ'.lower()|length }}", {}),
    # syntax errors
    ("{% if %}", {}), ("{{ 1 +", {}), ("{{ (1 }}", {}), ("{% endif %}", {}), ("{% for x %}{% endfor %}", {}), ("{% nosuch %}", {}), ("{# x", {}), ("{% raw %} x", {}), ("{{ 'a }}", {}), ("{% set 1 = 2 %}", {}), ("{{ a b }}", {}), ("{% if 1 %}", {}), ("{{ }}", {}), ("{{ 1 | }}", {}), ("{% do x %}", {}), ("{{ f(a=1, 2) }}", {}), ("{{ 1 is string is none }}", {}), ("{% break %}", {}),
]


def kind(e):
    if isinstance(e, (jinja2.TemplateSyntaxError, SyntaxError)) and not isinstance(e, jinja2.TemplateAssertionError):
        return "syntax"
    return "raised" if type(e) is jinja2.exceptions.TemplateError else "runtime"


def run(template, variables):
    case = {"template": template, "vars": variables}
    try:
        case["text"] = utils._compile_jinja_template(template).render(**variables)
    except RecursionError:
        case["error"] = "limit"
    except Exception as e:
        case["error"] = kind(e)
        case["message"] = str(e)
    return case


def main(demo, out):
    if (jinja2.__version__, transformers.__version__) != (JINJA, TRANSFORMERS):
        sys.exit(f"needs jinja2 {JINJA} and transformers {TRANSFORMERS}, found {jinja2.__version__} and {transformers.__version__}")
    cases = [run(t, v) for t, v in CASES]
    src = open(demo, encoding="utf-8").read()
    tool = {"type": "function", "function": {"name": "f", "description": "é <d>", "parameters": {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "number", "default": 1.0}}}}}
    call = {"type": "function", "function": {"name": "f", "arguments": {"b": 1, "a": 2.0}}}
    talks = [
        {"messages": MSGS[:1], "add_generation_prompt": True},
        {"messages": [{"role": "system", "content": "S"}] + MSGS, "add_generation_prompt": True, "enable_thinking": False},
        {"messages": MSGS, "tools": [tool], "add_generation_prompt": True, "enable_thinking": True},
        {"messages": MSGS[:1] + [{"role": "assistant", "content": "", "reasoning_content": "r", "tool_calls": [call, call]},
                                 {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"}], "tools": [tool], "add_generation_prompt": True},
    ]
    demo_cases = [run(src, {"tools": None, **t}) for t in talks]
    for c in demo_cases:
        c["template"] = "demo"
    header = {"script": "tools/golden/jinja.py", "jinja2": JINJA, "transformers": TRANSFORMERS}
    env = utils._compile_jinja_template("").environment
    names = {"filters": sorted(env.filters), "tests": sorted(env.tests), "globals": sorted(env.globals)}
    with open(out, "w", encoding="utf-8") as f:
        f.write('{"made": ' + json.dumps(header) + ',\n"names": ' + json.dumps(names) + ',\n"cases": [\n')
        f.write(",\n".join(json.dumps(c, ensure_ascii=False) for c in cases + demo_cases) + "\n]}\n")
    print(f"{len(cases) + len(demo_cases)} cases, jinja2 {JINJA}, transformers {TRANSFORMERS}")


if __name__ == "__main__":
    main(*sys.argv[1:])
