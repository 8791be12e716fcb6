//go:build unix

package flow_test

import (
	"regexp"
	"strings"
	"testing"
)

// servers are MCP servers, roles and an agent that use them.
var servers = map[string]string{
	"config/functions/mcp.json": `{"mcpServers": {
  "a": {"command": "mcp-server", "args": ["a"], "sandbox": "full"},
  "b": {"command": "mcp-server", "args": ["b"], "sandbox": "full"}}}`,
	"config/roles/with-a.md":      "---\nenabled_mcp_servers: a\n---\nYou greet.",
	"config/roles/with-b.md":      "---\nenabled_mcp_servers: b\n---\nYou greet.",
	"config/roles/with-alias.md":  "---\nenabled_mcp_servers: greeters\n---\nYou greet.",
	"config/roles/without.md":     "You write.",
	"config/agents/b/config.yaml": "name: b\ninstructions: You greet.\nmcp_servers: [b]\n",
}

// greet is a model that uses the server that it is asked to use, in three steps.
const greet = `rules:
  - {match: {text: use a, turn: 1}, tool_calls: [{name: mcp__search_a, arguments: {query: greet somebody}}]}
  - {match: {text: use a, turn: 2}, tool_calls: [{name: mcp__describe_a, arguments: {tool: greet_a}}]}
  - {match: {text: use a, turn: 3}, tool_calls: [{name: mcp__invoke_a, arguments: {tool: greet_a, arguments: {name: Ann}}}]}
  - {match: {text: use b, turn: 1}, tool_calls: [{name: mcp__search_b, arguments: {query: greet somebody}}]}
  - {match: {text: use b, turn: 2}, tool_calls: [{name: mcp__describe_b, arguments: {tool: greet_b}}]}
  - {match: {text: use b, turn: 3}, tool_calls: [{name: mcp__invoke_b, arguments: {tool: greet_b, arguments: {name: Ann}}}]}
  - {match: {regex: use .$, turn: 4}, reply: 'Done: {{tool_result}}'}
` + answers

// spinner matches the turning ring of what takes long.
const spinner = `[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]`

// ran waits until the servers have started and stopped as wanted.
func (u *user) ran(want ...string) {
	u.t.Helper()
	defer func() {
		if u.t.Failed() {
			u.t.Logf("the servers: %q", u.read("servers"))
		}
	}()
	u.until("servers "+strings.Join(want, ", "), func(string) bool { return u.read("servers") == strings.Join(want, "\n")+"\n" })
}

// serverSetup is what a user with servers has.
func serverSetup(config string) setup {
	return setup{rules: greet, files: servers, config: tools + "mapping_mcp_servers: {greeters: 'a,b'}\n" + config, rows: 60}
}

func TestServers(t *testing.T) {
	t.Parallel()
	o := serverSetup("enabled_mcp_servers: a\n")
	eachFace(t, o, func(t *testing.T, u *user, name string) {
		u.ran("starts a")
		u.do("use a", `^Done: .*a greets Ann`)
		u.do(".set enabled_mcp_servers b")
		u.ran("starts a", "starts b", "stops a")
		u.do("use b", `^Done: .*b greets Ann`)
		u.do(".set mcp_server_support false")
		u.ran("starts a", "starts b", "stops a", "stops b")
		u.do(".set mcp_server_support true")
		u.ran("starts a", "starts b", "stops a", "stops b", "starts b")
		u.do(".set enabled_mcp_servers null")
		u.ran("starts a", "starts b", "stops a", "stops b", "starts b", "stops b")
		u.golden(name)
	})
}

// TestRolesWithServers: what a role asks for runs as long as the role is in force.
func TestRolesWithServers(t *testing.T) {
	t.Parallel()
	u := begin(t, serverSetup(""))
	u.do(".role with-a")
	u.ran("starts a")
	u.do("use a", `^Done: .*a greets Ann`)
	u.do(".exit role")
	u.ran("starts a", "stops a")
	u.do(".role with-b")
	u.ran("starts a", "stops a", "starts b")
	u.do("use b", `^Done: .*b greets Ann`)
	u.do(".role without")
	u.ran("starts a", "stops a", "starts b", "stops b")
}

// TestServersOfAll: leaving a role or an agent brings back the servers that the configuration asks for.
func TestServersOfAll(t *testing.T) {
	t.Parallel()
	u := begin(t, serverSetup("enabled_mcp_servers: a\n"))
	u.ran("starts a")
	u.do(".role with-b")
	u.ran("starts a", "starts b", "stops a")
	u.do(".exit role")
	u.ran("starts a", "starts b", "stops a", "starts a", "stops b")
	u.do(".agent b")
	u.ran("starts a", "starts b", "stops a", "starts a", "stops b", "starts b", "stops a")
	u.do("use b", `^Done: .*b greets Ann`)
	u.do(".exit agent")
	u.ran("starts a", "starts b", "stops a", "starts a", "stops b", "starts b", "stops a", "starts a", "stops b")
	u.do("use a", `^Done: .*a greets Ann`)
	u.enter(".exit")
	u.leaves(0)
	if got := u.read("servers"); strings.Count(got, "starts") != strings.Count(got, "stops") {
		t.Errorf("the servers did not all stop:\n%s", got)
	}
}

// TestServerAlias: an alias stands for several servers, and a session has those with which it began.
func TestServerAlias(t *testing.T) {
	t.Parallel()
	u := begin(t, serverSetup(""))
	u.do(".role with-alias")
	u.until("both servers", func(string) bool { return strings.Count(u.read("servers"), "starts") == 2 })
	u.do("use a", `^Done: .*a greets Ann`)
	u.do("use b", `^Done: .*b greets Ann`)
	before := u.enter(".session greetings")
	u.answer(`Take what was said here into session \S+\?`, "Enter")
	u.idle(before + 1)
	u.do("use a", `^Done: .*a greets Ann`)
	if got := u.read("servers"); strings.Contains(got, "stops") {
		t.Errorf("the servers changed:\n%s", got)
	}
}

// TestSessionWithServers: a session brings back the servers that it was saved with, for as long as it is in force.
func TestSessionWithServers(t *testing.T) {
	t.Parallel()
	u := begin(t, serverSetup("save_session: true\n"))
	u.do(".session greetings")
	u.do(".set enabled_mcp_servers a")
	u.ran("starts a")
	u.do("use a", `^Done: .*a greets Ann`)
	u.do(".exit session")
	u.ran("starts a", "stops a")
	u.do(".session greetings")
	u.ran("starts a", "stops a", "starts a")
	u.do("use a", `^Done: .*a greets Ann`)
	u.do(".exit session")
	u.ran("starts a", "stops a", "starts a", "stops a")
}

// TestStartingServers: a spinner shows that servers start, and Ctrl-C stops waiting for them.
func TestStartingServers(t *testing.T) {
	t.Parallel()
	o := serverSetup("")
	o.files = map[string]string{
		"config/functions/mcp.json": `{"mcpServers": {"a": {"command": "mcp-server", "args": ["a", "waits"], "sandbox": "full"}}}`,
		"config/roles/with-a.md":    "---\nenabled_mcp_servers: a\n---\nYou greet.",
	}
	eachFace(t, o, func(t *testing.T, u *user, name string) {
		before := u.enter(".role with-a")
		u.sees(spinner + ` .*MCP server`)
		u.write("go", "")
		u.idle(before + 1)
		u.prompted("builtin:script)with-a>")
		if all := u.joined(); regexp.MustCompile(spinner).MatchString(all) {
			t.Errorf("the spinner stays:\n%s", all)
		}
		u.do("use a", `^Done: .*a greets Ann`)
	})
}

// TestMCPCommands: prompts and resources of servers are used by name.
func TestMCPCommands(t *testing.T) {
	t.Parallel()
	eachFace(t, serverSetup("enabled_mcp_servers: a\n"), func(t *testing.T, u *user, name string) {
		u.do(".mcp", `^a +1 tool, 1 prompt, 1 resource$`)
		u.do(".mcp a", `greet_a`, `review_a <topic> \[tone\]`, `text://a`)
		u.do(".mcp prompt a/review_a topic=boats tone=kind", `^You said: Review boats in a kind tone\.$`)
		u.do(".mcp prompt a/review_a", `topic`)
		u.do(".mcp prompt a/nothing", `review_a`)
		u.do(".mcp resource a text://a -- What is it?", `(?s)What is it\?.*the motto of a`)
		u.do(".mcp resource b text://b", `(?i)server`)
		u.golden(name)
	})
}
