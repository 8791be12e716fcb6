//go:build unix

package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hangs is a workflow of the form of a digest: a map whose scripts never end, each with
// a child of its own that holds the output open.
var hangs = map[string]string{
	"graph.yaml": `
name: hangs
sandbox: full # where processes have the same numbers
initial_state: {items: [0, 1, 2]}
start: each
nodes:
  each: {type: map, over: "{{items}}", as: item, branch: hang, output_key: x, collect_into: xs, next: done}
  hang: {type: script, script: hang.sh, timeout: 600}
  done: {type: end, output: never}
`,
	"hang.sh": `
n=$(printf '%s' "$GRAPH_STATE" | sed 's/.*"item":\([0-9]*\).*/\1/')
sh -c 'echo $$ > child'$n'.tmp; mv child'$n'.tmp child'$n'.pid; exec sleep 600' &
echo $$ > script$n.tmp; mv script$n.tmp script$n.pid
trap '' INT # a script may ignore the signal
wait
`,
}

// TestInterrupt sends the signal of Ctrl-C: the program ends with status 130, and
// nothing it started is left.
func TestInterrupt(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range hangs {
				write(t, filepath.Join(dir, "agent", name), text)
			}
			testInterrupt(t, sig, dir, 10*time.Second, []string{"script0", "script1", "script2", "child0", "child1", "child2"}, "-a", "./agent", "x")
			list := exec.Command("loki", "--runs", "--limit", "1", "--output", "json")
			list.Dir, list.Env = dir, emptyHome(dir)
			out, err := list.Output()
			if err != nil || strings.Contains(string(out), "context canceled") || sig == syscall.SIGINT && !strings.Contains(string(out), "interrupt signal received") {
				t.Errorf("%v: the run on record: %s", err, out)
			}
		})
	}
}

// TestInterruptAgents has an agent with children, and they have children whose tools never end and
// do not heed the signal. All are gone within a second.
func TestInterruptAgents(t *testing.T) {
	dir := t.TempDir()
	for name, instructions := range map[string]string{"boss": "You lead.", "lead": "You lead.", "hand": "You work."} {
		agent := filepath.Join(dir, "home", "config", "agents", name)
		write(t, filepath.Join(agent, "config.yaml"), "name: "+name+"\ncan_spawn_agents: true\ninstructions: "+instructions+"\nmodel: builtin:script/"+filepath.Join(dir, name+".yaml")+"\n")
		write(t, filepath.Join(agent, "tools.sh"), `
# @cmd Work without end
# @option --name! The name
hang() {
    trap '' INT TERM
    sh -c 'trap "" INT TERM; echo $$ > $0.tmp; mv $0.tmp $0.pid; while :; do sleep 600; done' "child$argc_name" &
    echo $$ > "tool$argc_name.tmp"; mv "tool$argc_name.tmp" "tool$argc_name.pid"
    wait
}
eval "$(argc --argc-eval "$0" "$@")"
`)
	}
	start := func(agent, prompt string) string {
		return "{name: agent__spawn, arguments: {agent: " + agent + ", prompt: " + prompt + "}}"
	}
	write(t, filepath.Join(dir, "boss.yaml"), `
rules:
  - match: {turn: 1}
    tool_calls: [`+start("lead", "a")+`, `+start("lead", "b")+`]
  - match: {turn: 2, result_regex: '"id":"(agent_lead_\w+)"'}
    tool_calls: [{name: agent__collect, arguments: {id: $1}}]
`)
	write(t, filepath.Join(dir, "lead.yaml"), `
rules:
  - match: {turn: 1}
    tool_calls: [`+start("hand", "'{{text}}1'")+`, `+start("hand", "'{{text}}2'")+`]
  - match: {turn: 2}
    tool_calls: [{name: hang, arguments: {name: '{{text}}'}}]
`)
	write(t, filepath.Join(dir, "hand.yaml"), "rules: [{match: {turn: 1}, tool_calls: [{name: hang, arguments: {name: '{{text}}'}}]}]\n")
	var pids []string
	for _, name := range []string{"a", "b", "a1", "a2", "b1", "b2"} {
		pids = append(pids, "tool"+name, "child"+name)
	}
	testInterrupt(t, syscall.SIGINT, dir, time.Second, pids, "-a", "boss", "--yes", "x")
}

// TestNamedPipes: a named pipe is refused at once where a file is named, and the first signal ends the reading of one that is
// open already, such as that of <(command).
func TestNamedPipes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.yaml"), "model: builtin:echo\nclients: [{type: builtin}]\ntriggers: {pr: {agent: demo, webhook: {verify: none}}}\n")
	pipe := filepath.Join(dir, "p")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args   func(path string) []string
		config string
		whole  bool // it is read without a way to stop
	}{
		"schema":     {args: func(p string) []string { return []string{"--schema", p, "hi"} }},
		"model":      {args: func(p string) []string { return []string{"-m", "builtin:script/" + p, "hi"} }},
		"map":        {args: func(p string) []string { return []string{"--map", p, "hi"} }},
		"trigger":    {args: func(p string) []string { return []string{"--trigger-test", "pr", p} }},
		"answers":    {args: func(p string) []string { return []string{"-a", "demo", "--answers", p, "hi"} }},
		"attachment": {args: func(p string) []string { return []string{"-f", p, "hi"} }},
		"config":     {args: func(string) []string { return []string{"hi"} }, config: pipe, whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := func(path string) (*exec.Cmd, *bytes.Buffer) {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				t.Cleanup(cancel)
				cmd := exec.CommandContext(ctx, "loki", tt.args(path)...)
				config := filepath.Join(dir, "config.yaml")
				if tt.config != "" {
					config = tt.config
				}
				cmd.Dir, cmd.Env = dir, append(emptyHome(t.TempDir()), "LOKI_CONFIG_FILE="+config)
				said := new(bytes.Buffer)
				cmd.Stderr = said
				return cmd, said
			}
			cmd, said := command(pipe)
			if err := cmd.Run(); cmd.ProcessState.ExitCode() < 1 || !strings.Contains(said.String(), "is a named pipe, not a file") {
				t.Errorf("%v: %s", err, said)
			}
			if tt.whole {
				return
			}
			in, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			cmd, said = command("/dev/fd/3")
			cmd.ExtraFiles = []*os.File{in}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			in.Close()
			if _, err := out.Write(bytes.Repeat([]byte(" "), 200<<10)); err != nil { // more than a pipe holds
				t.Fatalf("%v: %s", err, said)
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
				t.Errorf("%v: %s", err, said)
			}
		})
	}
}

// testInterrupt sends a signal to the program with args once the processes that write their ids
// have begun. It has to end within a time, and they with it.
func testInterrupt(t *testing.T, sig os.Signal, dir string, within time.Duration, files []string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "loki", args...)
	cmd.Dir = dir
	cmd.Env = emptyHome(dir)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []string
	for _, name := range files {
		pids = append(pids, waitFor(ctx, t, filepath.Join(dir, name+".pid"), &stderr))
	}
	begin := time.Now()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the status is looked at next
	took := time.Since(begin)
	t.Logf("all ended after %s", took)
	if took > within {
		t.Errorf("it took %s to end", took)
	}
	if got := cmd.ProcessState.ExitCode(); got != 130 {
		t.Errorf("exit status %d", got)
	}
	for _, pid := range pids {
		if err := waitGone(pid, time.Now().Add(time.Second)); err != nil {
			t.Error(err)
		}
	}
	if stdout.Len() > 0 {
		t.Errorf("printed %q", stdout.String())
	}
	if t.Failed() {
		t.Log(stderr.String())
	}
}

// waitFor returns the content of a file that a process is about to write.
func waitFor(ctx context.Context, t *testing.T, path string, stderr *bytes.Buffer) string {
	t.Helper()
	for {
		data, err := os.ReadFile(path)
		if err == nil {
			return strings.TrimSpace(string(data))
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s did not appear: %s", path, stderr)
		case <-time.After(5 * time.Millisecond): // nothing tells when a file appears
		}
	}
}
