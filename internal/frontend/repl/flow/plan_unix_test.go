//go:build unix

package flow_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// plan says which test shows what users do.
var plan = []struct{ does, test string }{
	{"start the REPL", "TestStart"},
	{"leave with .exit", "TestExit"},
	{"leave with Ctrl-D, and Ctrl-C at the prompt", "TestStart"},
	{"begin with a role", "TestPreludeRole"},
	{"begin with a session and a role", "TestPreludeSession"},

	{"ask, .continue, .regenerate, .copy, an empty line", "TestChat"},
	{"several lines with :::, by pasting, with Ctrl-J", "TestSeveralLines"},
	{".help, .info", "TestHelpAndInfo"},

	{".role NAME, with a text, .info role, .save role, .exit role", "TestRoles"},
	{".edit role, and .role with a new name", "TestEditRole"},
	{"a role whose servers start with a spinner", "TestStartingServers"},
	{"a role whose servers stop when it is left", "TestRolesWithServers"},
	{"a role in a session", "TestRoleInSession"},

	{"a temporary session", "TestTemporarySession"},
	{"a session with a name, .info, .save, .empty and .exit session, a session within a session", "TestSessions"},
	{".edit session", "TestEditSession"},
	{".compress session with its spinner, and compression by itself", "TestCompress"},
	{"the last answer taken along into a session", "TestCarryOver"},
	{"a session with servers", "TestSessionWithServers"},
	{"the name that a session gets by itself", "TestAutoName"},

	{".agent with variables, .info agent, .starter, .edit agent-config, tools of the agent and of all, an agent within an agent, a tool that fails", "TestAgent"},
	{"an agent with a session", "TestAgentSession"},
	{"a graph agent, which takes no session, and .edit agent-config of one", "TestGraphAgent"},
	{"an agent with servers", "TestServersOfAll"},
	{"an agent whose servers are off", "TestAgentWithoutServers"},
	{"one of two scripts of a tool", "TestToolPriority"},
	{".clear todo, and going on until the list is done", "TestAgentTodo"},

	{"spawn, check, collect, list, cancel, too many agents, a question to the agent above and its answer", "TestChildren"},
	{"agents too deep", "TestDepth"},
	{"messages between agents", "TestMessages"},

	{".rag, .info rag, .sources rag, .edit rag-docs, .rebuild rag, .exit rag, a question that its passages go with", "TestKnowledge"},

	{"servers from the configuration, search, describe, invoke, other servers, none, off and on", "TestServers"},
	{"from the servers of all to those of a role or an agent and back", "TestServersOfAll"},
	{"servers by an alias", "TestServerAlias"},
	{".mcp with prompts and resources", "TestMCPCommands"},

	{".set of each kind", "TestSettings"},
	{".set model, .model", "TestModel"},
	{".mode, Shift-Tab, and a plan that is accepted, changed and refused", "TestPlanMode"},
	{"completion of names, settings and values", "TestCompletion"},
	{".delete of each kind", "TestDelete"},
	{".vault add, get, update, delete, list", "TestVault"},

	{".macro", "TestMacros"},
	{".macro with a new name", "TestMakeMacro"},
	{"the macro for commit messages", "TestCommitMessage"},
	{".file with files and commands", "TestFile"},
	{".file with an address", "TestAddress"},
	{".edit config", "TestEdit"},

	{"errors, after which the REPL goes on", "TestErrors"},
	{"Ctrl-C during an answer, typing ahead", "TestInterrupt"},
	{"Ctrl-D during an answer", "TestLeaveDuringAnswer"},
	{"a job that ends while a line is typed", "TestJobNews"},
	{"a day's work in a clone, from the question about trust to the merge", "TestDay"},
	{"main screens", "TestScreens"},
}

// TestPlan finds each test of the plan.
func TestPlan(t *testing.T) {
	tests := testsHere(t)
	for _, line := range plan {
		if !tests[line.test] {
			t.Errorf("%s: there is no %s", line.does, line.test)
		}
	}
}

// testsHere returns the names of the tests of this package.
func testsHere(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				found[f.Name.Name] = true
			}
		}
	}
	return found
}
