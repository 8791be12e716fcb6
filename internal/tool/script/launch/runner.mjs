// Makes the call that the command line asks for.
async function runner(config) {
  const words = process.argv.slice(2);
  const name = config.agent ? words.shift() : config.tool;
  const stored = process.env.LLM_TOOL_DATA_FILE;
  delete process.env.LLM_TOOL_DATA_FILE;
  let text = words[0];
  if (stored && existsSync(stored)) text = readFileSync(stored, "utf8");
  if (name === undefined || text === undefined) {
    throw wrong(`usage: ${config.agent || config.tool} ${config.agent ? "FUNCTION " : ""}JSON`);
  }
  const called = config.functions[name];
  if (!called) throw wrong(`there is no function ${name}; there are ${Object.keys(config.functions).join(", ")}`);
  let data;
  try {
    data = JSON.parse(text);
  } catch (error) {
    throw wrong(`the arguments are not valid JSON: ${error.message}`);
  }
  for (const param of called.nulls) if (!(param in data)) data[param] = null;
  for (const path of config.env_files) if (existsSync(path)) load(path);
  Object.assign(process.env, config.env);
  if (config.agent) process.env.LLM_AGENT_FUNC = called.name;
  await call(config.file, called.name, called.params, data);
}

// Fills in what the environment does not have.
function load(path) {
  for (const line of readFileSync(path, "utf8").split("\n")) {
    const at = line.indexOf("=");
    const key = line.slice(0, Math.max(at, 0)).trim();
    if (!key || key.startsWith("#") || key in process.env) continue;
    process.env[key] = line.slice(at + 1).trim().replace(/^(["'])(.*)\1$/, "$2");
  }
}

// What is told of such an error is its message alone.
function wrong(message) {
  return Object.assign(new Error(message), { stack: message });
}

