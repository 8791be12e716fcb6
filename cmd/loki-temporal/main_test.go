package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"loki/internal/base/fault"
)

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		name, args, wantErr string
	}{
		{name: "start", args: "-a digest --agent-variable tone kind -m m --detach some text --not-an-option"},
		{name: "worker", args: "--worker --task-queue q"},
		{name: "answer", args: "--resume id --answer a=x --answer b=y --output ndjson"},
		{name: "state", args: "--run id --state"},
		{name: "nothing", args: "", wantErr: "is needed"},
		{name: "two", args: "--worker --run id", wantErr: "is needed"},
		{name: "stray_answer", args: "--run id --answer x", wantErr: "go with --resume"},
		{name: "both_answers", args: "--resume id --answer x --answers f", wantErr: "do not go together"},
		{name: "stray_state", args: "--resume id --state", wantErr: "--state goes with --run"},
		{name: "stray_prompt", args: "--resume id text", wantErr: "a prompt, --model and --agent-variable go with --agent"},
		{name: "stray_yes", args: "--run id --yes", wantErr: "--yes and --detach"},
		{name: "format", args: "--run id --output xml", wantErr: "has to be text, json or ndjson"},
		{name: "heartbeat", args: "-a digest --heartbeat 10ms", wantErr: "a second or more"},
		{name: "fork", args: "--fork id@3 --force --yes --detach"},
		{name: "signal", args: `--signal id paid={"sum":5}`},
		{name: "signal_without_name", args: "--signal id", wantErr: "needs one NAME=JSON"},
		{name: "stray_force", args: "--run id --force", wantErr: "--force goes with --resume and --fork"},
		{name: "schedule", args: "--schedule-put name --task-queue q"},
		{name: "schedules", args: "--schedules --output json"},
		{name: "two_schedules", args: "--schedule-put name --schedule-delete other", wantErr: "is needed"},
		{name: "unknown", args: "--forks id", wantErr: "unknown flag"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &command{out: io.Discard, err: io.Discard}
			err := c.options(strings.Fields(tt.args))
			switch {
			case tt.wantErr == "" && err != nil:
				t.Error(err)
			case tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr) || fault.CodeOf(err) != fault.Usage):
				t.Errorf("%v, want %s", err, tt.wantErr)
			}
		})
	}
}

func TestVariables(t *testing.T) {
	c := &command{out: io.Discard, err: io.Discard}
	args := []string{"--agent-variable", "tone", "very kind", "-a", "digest", "--agent-variable", "words", "-7", "the", "--agent-variable", "prompt"}
	if err := c.options(args); err != nil {
		t.Fatal(err)
	}
	if want := [][2]string{{"tone", "very kind"}, {"words", "-7"}}; !slices.Equal(c.variables, want) {
		t.Errorf("variables %q, want %q", c.variables, want)
	}
	if want := []string{"the", "--agent-variable", "prompt"}; c.agent != "digest" || !slices.Equal(c.text, want) {
		t.Errorf("agent %q, text %q", c.agent, c.text)
	}
}
