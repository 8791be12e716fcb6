import json
import os
import sys


def call(file, name, data):
    """Calls a function of a file and hands on what it returns."""
    sys.argv = [file]
    sys.path[0] = os.path.dirname(file)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)
    # Not an import, which would leave __pycache__ beside the tools.
    module = type(sys)("loki_tool")
    module.__file__ = file
    sys.modules["loki_tool"] = module
    with open(file, "rb") as f:
        code = compile(f.read(), file, "exec")
    exec(code, module.__dict__)
    if not hasattr(module, name):
        raise AttributeError(f"{file} has no function {name}")
    result = getattr(module, name)(**data)
    if hasattr(result, "__await__"):
        import asyncio

        async def finish(awaitable):
            return await awaitable

        result = asyncio.run(finish(result))
    deliver(result)


def deliver(result):
    if isinstance(result, (str, bool, int, float)):
        text = str(result)
    elif isinstance(result, (dict, list, tuple)):
        text = json.dumps(result, indent=2, ensure_ascii=False, default=str)
    else:
        return
    output = os.environ.get("LLM_OUTPUT")
    if not output:
        print(text)
        return
    with open(output, "w", encoding="utf-8", errors="replace", newline="") as f:
        f.write(text)


def report(kind, value, trace):
    """Shows an exception without the frames of this program."""
    import traceback

    while trace and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    traceback.print_exception(kind, value, trace)


