package permission_test

import (
	"encoding/json"
	"testing"

	"loki/internal/base/process/sandbox"
	"loki/internal/llm/chat"
	"loki/internal/tool/permission"
)

// TestPlanMode: in plan mode nothing that changes something is allowed or asked about, whatever the user allowed before.
func TestPlanMode(t *testing.T) {
	t.Parallel()
	rules := `
trust: [good]
default: allow
rules:
  - {tool: "*", action: allow}
  - {tool: execute_command, action: allow, command: "git *"}
  - {tool: execute_command, action: ask, command: "ls *"}
`
	memory := permission.NewMemory("")
	if err := memory.Add(t.Context(), permission.Session, "", []permission.Grant{{Tool: permission.AnyProgram, Level: sandbox.Write}, {Tool: "fs_rm"}}); err != nil {
		t.Fatal(err)
	}
	confined := func(c permission.Call, level sandbox.Level) permission.Call {
		c.Sandbox = sandbox.Declaration{Level: level, Hosts: []string{"x.org"}}
		return c
	}
	plain := func(tool string, readOnly bool, args string) permission.Call {
		return permission.Call{Tool: tool, ReadOnly: readOnly, Destructive: !readOnly, Arguments: json.RawMessage(args)}
	}
	for _, tt := range []struct {
		name      string
		sandboxed bool
		call      permission.Call
		want      permission.Action
	}{
		{"command_at_read", true, confined(shellCall("touch x"), sandbox.Read), permission.Allow},
		{"allowed_command_at_read", true, confined(shellCall("git commit -m x"), sandbox.Read), permission.Allow},
		{"command_at_write", true, confined(levelCall("touch x", sandbox.Write), sandbox.Write), permission.Deny},
		{"command_at_network", true, confined(levelCall("git push", sandbox.Network), sandbox.Network), permission.Deny},
		{"command_at_full", true, confined(levelCall("git push", sandbox.Full), sandbox.Full), permission.Deny},
		{"asked_command", true, confined(shellCall("ls -la"), sandbox.Read), permission.Ask},
		{"unheld_command", true, shellCall("cat a.txt"), permission.Deny},
		{"reading_command_without_a_sandbox", false, shellCall("cat README.md"), permission.Allow},
		{"other_command_without_a_sandbox", false, shellCall("git log"), permission.Deny},
		{"redirection_without_a_sandbox", false, shellCall("cat README.md >x"), permission.Deny},
		{"code_at_read", true, confined(plain("execute_py_code", false, `{"code":"1"}`), sandbox.Read), permission.Allow},
		{"code_at_write", true, confined(plain("execute_py_code", false, `{"code":"1"}`), sandbox.Write), permission.Deny},
		{"code_without_a_sandbox", false, plain("execute_py_code", false, `{"code":"1"}`), permission.Deny},
		{"reading_tool", true, plain("fs_cat", true, `{"path":"a.txt"}`), permission.Allow},
		{"writing_tool", true, plain("fs_write", false, `{"path":"a.txt","contents":""}`), permission.Deny},
		{"granted_tool", true, plain("fs_rm", false, `{"path":"a.txt"}`), permission.Deny},
		{"mail", true, plain("send_mail", false, `{}`), permission.Deny},
		{"trusted_server_reads", true, plain("mcp__good__get", true, `{}`), permission.Allow},
		{"trusted_server_writes", true, plain("mcp__good__put", false, `{}`), permission.Deny},
		{"other_server_reads", true, plain("mcp__bad__get", true, `{}`), permission.Deny},
		{"invoked_tool_of_another_server", true, plain("mcp__invoke_bad", true, `{"tool":"get","arguments":{}}`), permission.Deny},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := judge(t, permission.Options{Root: project(t), Home: "/home/user", Shell: "bash", Sandboxed: tt.sandboxed, Rules: read(t, rules), Memory: memory})
			tt.call.Mode = chat.ModePlan
			v := j.Judge(tt.call)
			if v.Action != tt.want {
				t.Errorf("got %+v", v)
			}
			if v.Action != permission.Deny && tt.call.Sandbox.Level != "" && v.Level != sandbox.Read {
				t.Errorf("it runs at %s", v.Level)
			}
			tt.call.Mode = chat.ModeAsk
			if v := j.Judge(tt.call); v.Action == permission.Deny {
				t.Errorf("in the mode ask: %+v", v)
			}
		})
	}
}

// TestWriteMode: programs write in the workspace unasked, and nothing else is allowed by it.
func TestWriteMode(t *testing.T) {
	t.Parallel()
	j := judge(t, permission.Options{Root: project(t), Home: "/home/user", Shell: "bash", Sandboxed: true, Rules: read(t, `rules: [{tool: execute_command, action: ask, command: "rm *"}]`)})
	for text, want := range map[string]permission.Action{"touch x": permission.Allow, "rm x": permission.Ask} {
		call := levelCall(text, sandbox.Write)
		call.Sandbox.Level, call.Mode = sandbox.Write, chat.ModeWrite
		if v := j.Judge(call); v.Action != want || v.Level != sandbox.Write {
			t.Errorf("%s: %+v", text, v)
		}
		call.Mode = chat.ModeAsk
		if v := j.Judge(call); v.Action != permission.Ask {
			t.Errorf("%s in the mode ask: %+v", text, v)
		}
	}
	call := levelCall("curl x.org", sandbox.Network, "x.org")
	call.Sandbox, call.Mode = sandbox.Declaration{Level: sandbox.Network, Hosts: []string{"x.org"}}, chat.ModeWrite
	if v := j.Judge(call); v.Action != permission.Ask {
		t.Errorf("with the network: %+v", v)
	}
}
