"""Prints, as JSON, the functions at the top level of the source on standard input, which is only parsed.

The result is {"functions": [...]}, each with the fields of signature.Function, the types of default values
("value") and the reason why a tool cannot have such parameters ("problem"), or {"line": N, "msg": TEXT} for a source that cannot be read.
"""

import ast
import json
import re
import sys

# Types have the fields of signature.Type. The schemas for models cannot describe ANYTHING; every value is accepted.
ANYTHING = {"kind": "string", "any": True}
LIST = {"kind": "array", "item": ANYTHING}
WORDS = {
    "bool": {"kind": "boolean"}, "int": {"kind": "integer"}, "float": {"kind": "number"},
    "None": {"kind": "string", "optional": True, "null": True},
}
WORDS["NoneType"] = WORDS["None"]
for names, meaning in (
    ("str LiteralString AnyStr", {"kind": "string"}),
    ("list List set Set frozenset FrozenSet tuple Tuple Sequence MutableSequence Iterable Collection", LIST),
    ("dict Dict Mapping MutableMapping", {"kind": "object"}),
):
    for word in names.split():
        WORDS[word] = meaning

HEADINGS = {"Returns:", "Return:", "Yields:", "Raises:", "Example:", "Examples:", "Note:", "Notes:", "See Also:", "References:", "Todo:"}


def dotted(node):
    """Returns a name such as typing.List, None for other expressions."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        left = dotted(node.value)
        return left and left + "." + node.attr
    return None


def type_of(node):
    """Returns the type of an annotation. Of names from modules only the last part counts, and a string means its contents."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        members = [node.right]
        while isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.BitOr):
            node = node.left
            members.insert(0, node.right)
        return union([node.left] + members)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        inner = expression(node.value)
        return ANYTHING if inner is None or isinstance(inner, ast.Constant) and inner.value is not None else type_of(inner)
    if isinstance(node, ast.Constant) and node.value is None:
        return WORDS["None"]
    if isinstance(node, ast.Subscript):
        name = dotted(node.value)
        inner = node.slice
        if type(inner).__name__ == "Index":  # Python 3.8
            inner = inner.value
        return generic(name.split(".")[-1], inner.elts if isinstance(inner, ast.Tuple) else [inner]) if name else ANYTHING
    name = dotted(node)
    return WORDS.get(name.split(".")[-1], ANYTHING) if name else ANYTHING


def expression(text):
    """Returns the expression that a text is, None if it is none."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None


def generic(name, args):
    """Returns the type that name[args] means."""
    if name in ("tuple", "Tuple"):
        return tuple_of(args)
    if not args:
        return WORDS.get(name, ANYTHING)
    if name == "Optional":
        return dict(type_of(args[0]), optional=True, null=True)
    if name == "Union":
        return union(args)
    if name == "Literal":
        return literals(args)
    if name in ("Annotated", "Required", "NotRequired", "ReadOnly", "Final"):
        return type_of(args[0])
    found = WORDS.get(name, ANYTHING)
    return {"kind": "array", "item": type_of(args[0])} if found["kind"] == "array" else found


def tuple_of(args):
    """Returns the type of tuple[args]. Models see the type of the items if all have the same."""
    if len(args) == 2 and isinstance(args[1], ast.Constant) and args[1].value is ...:
        return {"kind": "array", "item": type_of(args[0])}
    if not args or any(isinstance(a, ast.Starred) for a in args):
        return LIST
    items = [type_of(a) for a in args]
    same = all(i["kind"] == items[0]["kind"] for i in items)
    return {"kind": "array", "item": items[0] if same else ANYTHING, "tuple": {"items": items, "required": len(items)}}


def union(nodes):
    """Returns the type of values that have one of several types. None is not a type of its own."""
    types = [type_of(n) for n in nodes]
    members = [t for t in types if t is not WORDS["None"]]
    null = len(members) < len(types) or any(t.get("null") for t in members)
    merged = dict(members[0]) if members else dict(ANYTHING)
    for t in members[1:]:
        merged = either(merged, t)
    if len(members) > 1 and "literals" not in merged:
        merged["forms"] = members
    merged.update(optional=null, null=null)
    return merged


def either(a, b):
    """Returns the type that models see for values that have one of two types."""
    if "literals" in a and "literals" in b:
        return {"kind": "string", "literals": a["literals"] + b["literals"]}
    if {a["kind"], b["kind"]} == {"integer", "number"}:
        return {"kind": "number"}
    if "literals" in a or "literals" in b or a["kind"] != b["kind"]:
        return dict(ANYTHING)
    if a["kind"] == "array" and a["item"]["kind"] != b["item"]["kind"]:
        return dict(LIST)
    return dict(a)


def literals(args):
    """Returns the type that Literal[...] means."""
    found = []
    for arg in args:
        literal = literal_of(arg)
        if literal is None:
            return ANYTHING
        if literal not in found:
            found.append(literal)
    return {"kind": "string", "literals": found, "null": any(f["json"] == "null" for f in found)}


def literal_of(node):
    """Returns a value as a signature.Literal. Names are those of enumerations; the function gets them as text."""
    minus = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    value = getattr(node.operand if minus else node, "value", None)
    if dotted(node):
        return {"text": dotted(node), "json": ""}
    if type(value) is int:
        return {"text": "-%d" % value if minus else str(value), "json": "-%d" % value if minus else str(value)}
    if minus or not isinstance(node, ast.Constant) or not (value is None or isinstance(value, (bool, str))):
        return None
    return {"text": value, "json": ""} if isinstance(value, str) else {"text": str(value), "json": json.dumps(value)}


def default_type(node):
    """Returns the type of a default value, None if it is not written as a literal."""
    minus = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    node = node.operand if minus else node
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(node, (ast.List, ast.ListComp, ast.Tuple, ast.Set, ast.SetComp)):
        return LIST
    if isinstance(node, (ast.Dict, ast.DictComp)):
        return WORDS["dict"]
    if isinstance(value, str):
        return {"kind": "string", "literals": [{"text": value, "json": ""}]}
    return WORDS[type(value).__name__] if isinstance(value, (bool, int, float)) else None


def docstring(lines, body):
    """Returns the text between the quotes of the string that is the first statement, as it is written."""
    first = body[0]
    value = getattr(first, "value", None)
    if not (isinstance(first, ast.Expr) and isinstance(value, ast.Constant) and isinstance(value.value, (str, bytes))):
        return ""
    if (first.col_offset, first.end_col_offset) != (value.col_offset, value.end_col_offset):
        return ""  # in parentheses
    text = lines[value.lineno - 1:value.end_lineno]
    text[-1] = text[-1][:value.end_col_offset]
    text[0] = text[0][value.col_offset:]
    found = re.fullmatch(r"""(?s)[a-zA-Z]*(\"{3}|'{3}|"|')((?:\\.|(?!\1).)*)\1""", b"\n".join(text).decode())
    return found.group(2) if found else ""


def entries(text):
    """Returns type and description of parameters after the line "Args:" of a docstring, and the text without that section.

    An entry is "name: description", "name type: description" or "name (type): description"; lines with a deeper
    indentation continue it. A blank line ends the section, and so do a line without indentation and a heading.
    """
    found, section, entry, last = {}, -1, 0, ""
    lines = text.split("\n")
    begin, end = 0, len(lines)
    for i, line in enumerate(lines):
        trimmed = line.strip()
        depth = len(line) - len(line.lstrip(" \t"))
        if section < 0:
            if trimmed.startswith("Args:"):
                section, begin = depth, i
            continue
        if depth == 0 or not trimmed or depth <= section and trimmed in HEADINGS:
            end = i
            break
        left, colon, right = trimmed.partition(":")
        if last and depth > entry:
            found[last][1] = (found[last][1] + " " + trimmed).strip()
            continue
        last, entry = "", depth
        if colon:
            last, _, word = left.strip().partition(" ")
            found[last] = [word.strip(), right.strip()]
    return found, "\n".join(lines[:begin] + lines[end:])


def cleandoc(text):
    """Returns a docstring without the indentation of its lines after the first, as inspect.cleandoc does."""
    first, *rest = text.expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    return re.sub(r"\n{3,}", "\n\n", "\n".join([first] + [line[margin:].rstrip() for line in rest]).strip())


def documented(word):
    """Returns the type of an entry and whether it is optional: int, int?, (int, optional)."""
    optional = False
    if word.startswith("("):
        word = (word[1:-1] if word.endswith(")") else word[1:]).strip()
        optional = "optional" in word.lower()
        left, comma, right = word.rpartition(",")
        if comma and right.strip().lower() == "optional":
            word = left.strip()
    optional = optional or word.endswith("?")
    word = word[:-1] if word.endswith("?") else word
    if word.startswith("literal:"):
        members = [m.strip().strip("\"'") for m in word[len("literal:"):].split("|")]
        return {"kind": "string", "literals": [{"text": m, "json": ""} for m in members]}, optional
    inner = expression(word)
    return ANYTHING if inner is None else type_of(inner), optional


def problem(args):
    """Returns why a tool cannot have these parameters, None if it can."""
    if args.posonlyargs:
        return {"line": args.posonlyargs[-1].lineno, "msg": '"/": a tool cannot have parameters without names'}
    for star, arg in (("*", args.vararg), ("**", args.kwarg)):
        if arg:
            return {"line": arg.lineno, "msg": "parameter %s%s: a tool cannot have a variable number of parameters" % (star, arg.arg)}
    return None


def function(lines, node):
    args, text = node.args, docstring(lines, node.body)
    docs, rest = entries(text)
    if docs and not set(docs) - {arg.arg for arg in args.args + args.kwonlyargs}:
        text = rest  # the descriptions are those of the parameters
    defaults = [None] * (len(args.args) - len(args.defaults)) + args.defaults[-len(args.args):] if args.args else []
    params = []
    for arg, default in list(zip(args.args, defaults)) + list(zip(args.kwonlyargs, args.kw_defaults)):
        word, description = docs.get(arg.arg, ("", ""))
        found, optional = documented(word) if word else (ANYTHING, False)
        if arg.annotation:
            found = type_of(arg.annotation)
        if optional:
            found = dict(found, optional=True, null=True)
        required = not default and not found.get("optional", False)
        params.append({
            "name": arg.arg, "description": description, "type": found, "required": required, "default": default is not None,
            "value": default_type(default) if arg.annotation else None,
        })
    return {"name": node.name, "line": node.lineno, "description": cleandoc(text), "params": params, "problem": problem(args)}


def read(source):
    try:
        lines = source.split(b"\n")
        tree = ast.parse(source.decode())
        return {"functions": [function(lines, n) for n in tree.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]}
    except UnicodeDecodeError as e:
        return {"line": source.count(b"\n", 0, e.start) + 1, "msg": "the text is not UTF-8"}
    except SyntaxError as e:
        return {"line": e.lineno or 1, "msg": "%s (column %d)" % (e.msg, e.offset or 1)}
    except (RecursionError, MemoryError):
        return {"line": 1, "msg": "the script is nested too deeply"}


json.dump(read(sys.stdin.buffer.read()), sys.stdout)
