// Prints what TypeScript's own parser finds in each source of a JSON list on standard input.
const ts = require("typescript");
const fs = require("node:fs");

function functions(source) {
  const file = ts.createSourceFile("tool.ts", source, ts.ScriptTarget.Latest, true);
  if (file.parseDiagnostics.length > 0) {
    return { error: ts.flattenDiagnosticMessageText(file.parseDiagnostics[0].messageText, "\n") };
  }
  const found = {};
  for (const node of file.statements) {
    if (!ts.isFunctionDeclaration(node) || !node.name || !node.body || node.asteriskToken) continue;
    const modifiers = (node.modifiers ?? []).map((m) => m.kind);
    if (!modifiers.includes(ts.SyntaxKind.ExportKeyword) || modifiers.includes(ts.SyntaxKind.DeclareKeyword)) continue;
    const odd = node.parameters.some((p) => p.dotDotDotToken || !ts.isIdentifier(p.name) || p.name.text === "this");
    found[node.name.text] = {
      line: file.getLineAndCharacterOfPosition(node.name.getStart()).line + 1,
      params: odd ? [] : node.parameters.map((p) => [p.name.text, p.initializer !== undefined, p.questionToken !== undefined]),
      odd,
    };
  }
  return { functions: found };
}

fs.writeSync(1, JSON.stringify(JSON.parse(fs.readFileSync(0, "utf8")).map(functions)));
