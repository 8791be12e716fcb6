package rest

import "testing"

func TestTerminalHint(t *testing.T) {
	for hint, want := range map[string]string{
		"":                                "",
		"GET /v1/roles lists them":        "loki --list roles lists them",
		"GET /v1/agents lists the agents": "loki --list agents lists the agents",
		"GET /v1/runs/k3v9k3v9/questions lists the questions":                  "loki --run k3v9k3v9 lists the questions",
		"see how far it has come: GET /v1/runs/k3v9k3v9":                       "see how far it has come: loki --run k3v9k3v9",
		"resume it where it stopped: POST /v1/runs/k3v9k3v9/resume":            "resume it where it stopped: loki --resume k3v9k3v9",
		"a session without messages becomes one: POST /v1/sessions/plan/agent": "a session without messages becomes one: POST /v1/sessions/plan/agent",
		"the server's configuration sets the limit: api.limits.max_body_bytes": "the server's configuration sets the limit: api.limits.max_body_bytes",
		"loki --run k3v9k3v9 lists the questions that wait":                    "loki --run k3v9k3v9 lists the questions that wait",
	} {
		if got := terminalHint(hint); got != want {
			t.Errorf("%q: %q, want %q", hint, got, want)
		}
	}
}
