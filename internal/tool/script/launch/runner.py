def runner(config):
    """Makes the call that the command line asks for."""
    sys.excepthook = report
    python = os.path.join(".venv", "Scripts", "python.exe") if os.name == "nt" else os.path.join(".venv", "bin", "python")
    if os.path.exists(python) and os.path.realpath(python) != os.path.realpath(sys.executable):
        os.execv(python, [python] + sys.argv)
    words = sys.argv[1:]
    agent = config["agent"]
    name = words.pop(0) if agent and words else ""
    stored = os.environ.pop("LLM_TOOL_DATA_FILE", "")
    if stored and os.path.exists(stored):
        with open(stored, encoding="utf-8") as f:
            text = f.read()
    elif words and (name or not agent):
        text = words[0]
    else:
        sys.exit(f"usage: {os.path.basename(sys.argv[0])} {'FUNCTION ' if agent else ''}JSON")
    try:
        data = json.loads(text)
    except ValueError as e:
        sys.exit(f"the arguments are not valid JSON: {e}")
    function = config["functions"].get(name if agent else config["tool"])
    if function is None:
        sys.exit(f"there is no function {name}; there are {', '.join(config['functions'])}")
    for parameter in function["nulls"]:
        data.setdefault(parameter, None)
    for path in config["env_files"]:
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                for line in f:
                    key, equals, value = line.strip().partition("=")
                    key, value = key.strip(), value.strip()
                    if equals and key and not key.startswith("#"):
                        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
                            value = value[1:-1]
                        os.environ.setdefault(key, value)
    os.environ.update(config["env"])
    if agent:
        os.environ["LLM_AGENT_FUNC"] = function["name"]
    call(config["file"], function["name"], data)


