# Runs the code on standard input as __main__, then prints the value of its last
# statement if that is an expression or an assignment to one name.
import sys

# A file of the working directory that is called ast.py is not to run in place of the module.
sys.path[:] = [p for p in sys.path if p]
import ast, linecache, os, traceback

code = sys.stdin.buffer.read().decode("utf-8")
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
sys.argv = ["code"]
sys.path.insert(0, os.getcwd())
name = "<code>"
linecache.cache[name] = (len(code), None, code.splitlines(True), name)
scope = {"__name__": "__main__", "__builtins__": __builtins__}


def report():
    kind, value, trace = sys.exc_info()
    frames = traceback.extract_tb(trace)
    while frames and frames[0].filename != name:
        frames.pop(0)
    if frames:
        sys.stderr.write("Traceback (most recent call last):\n" + "".join(traceback.format_list(frames)))
    sys.stderr.write("".join(traceback.format_exception_only(kind, value)))


def main():
    tree = ast.parse(code, name)
    last = tree.body[-1] if tree.body else None
    expr = None
    if isinstance(last, ast.Expr):
        tree.body.pop()
        expr = last.value
    elif isinstance(last, ast.Assign) and isinstance(last.targets[-1], ast.Name):
        expr = ast.copy_location(ast.Name(last.targets[-1].id, ast.Load()), last)
    elif isinstance(last, (ast.AnnAssign, ast.AugAssign)) and isinstance(last.target, ast.Name) and last.value is not None:
        expr = ast.copy_location(ast.Name(last.target.id, ast.Load()), last)
    exec(compile(tree, name, "exec"), scope)
    if expr is not None:
        value = eval(compile(ast.Expression(expr), name, "eval"), scope)
        if value is not None:
            print(value)


try:
    main()
except SystemExit:
    raise
except BaseException:
    sys.stdout.flush()
    report()
    sys.exit(1)
