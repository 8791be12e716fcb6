package rest

import "testing"

func TestHintFor(t *testing.T) {
	for _, tt := range []struct{ hint, want string }{
		{"", ""},
		{"did you mean place?", "did you mean place?"},
		{"give it with: --agent-variable NAME VALUE", `give it with: the member variables, {"NAME": "VALUE"}`},
		{"resume it: loki --resume k3v9abcd", "resume it: POST /v1/runs/k3v9abcd/resume"},
		{"undo that, or resume with the agent as it is now: loki --resume k3v9 --force", `undo that, or resume with the agent as it is now: POST /v1/runs/k3v9/resume with "force": true`},
		{
			"ask again, or have the question answered after what was said since: loki --resume k3v9 --force",
			"ask again, or have the question answered after what was said since: POST /v1/runs/k3v9/answers?force=true",
		},
		{"answer them: loki --resume k3v9 --answers FILE, a YAML file with a line for each: ask@2: ANSWER", `answer them: POST /v1/runs/k3v9/answers with {"ask@2": "ANSWER"}`},
		{"its output: loki --run k3v9; its steps again as a new run: loki --fork k3v9@STEP", `its output: GET /v1/runs/k3v9; its steps again as a new run: POST /v1/runs/k3v9/fork with "step": STEP`},
		{"fork an earlier step: loki --fork k3v9@3", `fork an earlier step: POST /v1/runs/k3v9/fork with "step": 3`},
		{"loki --run k3v9 lists the questions that wait", "GET /v1/runs/k3v9/questions lists the questions that wait"},
		{"see all runs: loki --runs; resume any of them: loki --resume ID", "see all runs: GET /v1/runs; resume any of them: POST /v1/runs/ID/resume"},
		{"loki --list sessions lists the sessions", "GET /v1/sessions lists the sessions"},
		{"put the node back, or start again with: loki -a my-agent", "put the node back, or start again with: POST /v1/agents/my-agent/runs"},
		{`go on with it there: cd "/x" && loki --resume k3v9`, `on the server: go on with it there: cd "/x" && loki --resume k3v9`},
		{"log in: loki --authenticate work", "on the server: log in: loki --authenticate work"},
		{"build it again with --rebuild-rag, which replaces what cannot be read", ""},
		{".set function_calling_support true", ""},
		{"leave it first: .exit session", ""},
		{"run it in a terminal, or consent to all with --yes", `run it in a terminal, or consent to all with "yes": true`},
		{`set extra.proxy to "-" for no proxy`, `set extra.proxy to "-" for no proxy`},
		{"mend agents/a/graph.yaml, line 3", "mend agents/a/graph.yaml, line 3"},
	} {
		if got := hintFor(tt.hint); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.hint, got, tt.want)
		}
	}
}
