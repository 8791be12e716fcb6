sys.excepthook = report
with open(os.environ.pop("LLM_TOOL_DATA_FILE"), encoding="utf-8") as arguments:
    data = json.load(arguments)
call(sys.argv[1], sys.argv[2], data)
