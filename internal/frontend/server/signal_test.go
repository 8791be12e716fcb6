package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/frontend/api"
	"loki/internal/frontend/server/servertest"
)

// shopAgent waits for a signal, and then for a moment.
const shopAgent = `
name: shop
start: payment
nodes:
  payment:
    type: wait
    signal: paid
    schema: {type: object, required: [amount], properties: {amount: {type: number}}}
    state_updates: {amount: "{{signal.amount}}"}
    next: pause
  pause: {type: wait, for: 0.02, next: done}
  done: {type: end, output: "{{amount}}"}
`

// TestSignals gives runs signals: the server goes on with them, and with the timer behind, by itself.
func TestSignals(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	s := servertest.Start(t, servertest.Files{"agents/shop/graph.yaml": shopAgent, "config.yaml": "api: {audit: {sink: file, path: " + log + "}}\n"})
	var began api.Run
	s.Post("/v1/agents/shop/runs", `{"prompt":"a book","wait":20}`).JSON(t, &began)
	if began.Status != "suspended" || !strings.Contains(began.Error, "waits for signal paid") {
		t.Fatalf("%+v", began)
	}
	var detail api.RunDetail
	s.Get("/v1/runs/"+began.ID).JSON(t, &detail)
	if len(detail.Waits) != 1 || detail.Waits[0].Signal != "paid" || detail.Waits[0].Node != "payment" || detail.Waits[0].Until != nil || len(detail.Pending) > 0 {
		t.Errorf("%+v", detail.Waits)
	}
	var list api.List[api.Run]
	s.Get("/v1/runs?status=suspended").JSON(t, &list)
	if len(list.Data) != 1 || len(list.Data[0].Waits) != 1 || list.Data[0].Waits[0].Signal != "paid" || len(began.Waits) != 1 {
		t.Errorf("%+v, %+v", list.Data, began.Waits)
	}
	path := "/v1/runs/" + began.ID + "/signals/"
	for _, tt := range []struct {
		name, body string
		status     int
		code, text string
	}{
		{"payd", `{"value":1}`, http.StatusNotFound, "signal_not_found", "signals of its graph: paid"},
		{"paid", `{"value":{"amount":"x"}}`, http.StatusBadRequest, "invalid_request", "/amount: must be a number"},
		{"paid", `{}`, http.StatusBadRequest, "invalid_request", "must be an object"},
		{"paid", `{"amount":1}`, http.StatusBadRequest, "invalid_request", "amount"},
	} {
		if a := s.Post(path+tt.name, tt.body); a.Status != tt.status || a.Code() != tt.code || !strings.Contains(a.Body, tt.text) {
			t.Errorf("%s %s: %d %s", tt.name, tt.body, a.Status, a.Body)
		}
	}
	for range 2 { // the second time it is the same signal
		var sent api.Signal
		a := s.Post(path+"paid", `{"value":{"amount":20}}`, "Idempotency-Key", "once")
		if a.JSON(t, &sent); a.Status != http.StatusOK || sent.Number != 1 || sent.Run != began.ID || sent.Name != "paid" || string(sent.Value) != `{"amount":20}` {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	until(t, "the run is done", func() bool { is, output := status(t, s, began.ID); return is == "done" && output == "20" })
	detail = api.RunDetail{}
	s.Get("/v1/runs/"+began.ID).JSON(t, &detail)
	if len(detail.Waits) > 0 || len(detail.Signals) != 1 || !detail.Signals[0].Taken {
		t.Errorf("%+v", detail.Signals)
	}
	if a := s.Post(path+"paid", `{"value":{"amount":21}}`); a.Status != http.StatusConflict {
		t.Errorf("a signal to a run that is done: %d %s", a.Status, a.Body)
	}
	events := s.Get("/v1/runs/" + began.ID + "/events").Body
	for _, want := range []string{`"type":"waiting"`, `"type":"signal"`, `"until":`} {
		if !strings.Contains(events, want) {
			t.Errorf("the events lack %s", want)
		}
	}
	audited, err := os.ReadFile(log)
	if err != nil || strings.Count(string(audited), `"run_signal"`) < 2 || !strings.Contains(string(audited), `"target":"run:`+began.ID+`"`) {
		t.Errorf("%v in\n%s", err, audited)
	}
}
