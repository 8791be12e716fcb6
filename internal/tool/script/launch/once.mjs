const [file, name, ...params] = process.argv.slice(2);
const data = JSON.parse(readFileSync(process.env.LLM_TOOL_DATA_FILE, "utf8"));
delete process.env.LLM_TOOL_DATA_FILE;
call(file, name, params, data).then(() => leave(process.exitCode ?? 0), fail);
