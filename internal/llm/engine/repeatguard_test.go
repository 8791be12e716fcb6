package engine

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loki/internal/base/fault"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
	"loki/internal/llm/event/eventtest"
	"loki/internal/llm/provider"
)

func TestLoops(t *testing.T) {
	t.Parallel()
	call := func(name, arguments string) chat.ToolCall { return chat.ToolCall{Name: name, Arguments: arguments} }
	look, same, other := call("look", `{"a":1,"b":2}`), call("look", `{"b": 2, "a": 1}`), call("look", `{"a":2}`)
	for _, tt := range []struct {
		name   string
		rounds [][]chat.ToolCall
		looped bool
		shown  string // arguments of the calls that the alert shows
	}{
		{"first", nil, false, ""},
		{"second", [][]chat.ToolCall{{look}}, false, ""},
		{"third", [][]chat.ToolCall{{look}, {same}}, true, ""},
		{"third_after_another", [][]chat.ToolCall{{other}, {look}, {same}}, true, `{"a":2}{"a":1,"b":2}{"b":2,"a":1}`},
		{"fourth_after_another", [][]chat.ToolCall{{other}, {look}, {same}, {same}}, true, `{"a":1,"b":2}{"b":2,"a":1}{"b":2,"a":1}`},
		{"other_arguments_between", [][]chat.ToolCall{{look}, {look}, {other}}, false, ""},
		{"other_tool_between", [][]chat.ToolCall{{look}, {look}, {call("wait", `{"a":1,"b":2}`)}}, false, ""},
		{"side_by_side_before", [][]chat.ToolCall{{look, look}}, true, ""},
		{"malformed", [][]chat.ToolCall{{call("look", "{")}, {call("look", "{")}}, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newRepeatGuard(0, 0)
			for _, calls := range tt.rounds {
				l.record(calls, make([]chat.Message, len(calls)))
			}
			alert, looped := l.check(look, "")
			if looped != tt.looped {
				t.Errorf("looped %v: %s", looped, alert)
			}
			if looped && (!json.Valid([]byte(alert)) || !strings.Contains(alert, "loop") || !strings.Contains(alert, "look")) {
				t.Error(alert)
			}
			var reply struct {
				Alert struct {
					History []struct{ Parameters json.RawMessage } `json:"call_history"`
				} `json:"tool_call_loop_alert"`
			}
			if looped {
				if err := json.Unmarshal([]byte(alert), &reply); err != nil {
					t.Fatal(err)
				}
			}
			shown := ""
			for _, c := range reply.Alert.History {
				shown += string(c.Parameters)
			}
			if shown != tt.shown {
				t.Errorf("the alert shows %s, want %s", shown, tt.shown)
			}
		})
	}
	l := newRepeatGuard(0, 0)
	for range 20 {
		l.record([]chat.ToolCall{look, call("bad", "{")}, make([]chat.Message, 2))
	}
	l.record([]chat.ToolCall{look, look}, make([]chat.Message, 2))
	if alert, _ := l.check(look, ""); !strings.Contains(alert, `"call_history":[{"name":"bad","parameters":"{"},`) || len(l.calls) != DefaultRepeats*DefaultWindow {
		t.Errorf("%s, %d calls", alert, len(l.calls))
	}
}

func TestAModelThatRepeatsItselfIsTold(t *testing.T) {
	t.Parallel()
	look := chat.ToolCall{ID: "1", Name: "look", Arguments: "{}"}
	f := &fake{}
	for range 4 {
		f.replies = append(f.replies, calls("", look))
	}
	f.replies = append(f.replies, says("enough"))
	made := 0
	rc, _ := newContext()
	req := user("hi")
	req.Tools = toolFunc(func(chat.ToolCall) string { made++; return "seen" })
	reply, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req)
	if err != nil || reply.Text != "enough" || made != 2 {
		t.Errorf("%q, %v, %d calls made", reply.Text, err, made)
	}
	var results []string
	for _, m := range reply.Messages {
		if m.Role == chat.ToolRole {
			results = append(results, strings.SplitN(m.Text(), ":", 2)[0])
		}
	}
	if diff := cmp.Diff([]string{"seen", "seen", `{"tool_call_loop_alert"`, `{"tool_call_loop_alert"`}, results); diff != "" {
		t.Error(diff)
	}
}

func TestAModelThatOnlyRepeatsItselfIsStopped(t *testing.T) {
	t.Parallel()
	look := chat.ToolCall{ID: "1", Name: "look", Arguments: "{}"}
	f := &fake{}
	for range 20 {
		f.replies = append(f.replies, calls("", look))
	}
	rc, events := newContext()
	req := user("hi")
	req.Tools = toolFunc(func(chat.ToolCall) string { return "seen" })
	_, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req)
	if fault.CodeOf(err) != fault.Provider || !strings.Contains(err.Error(), "look") || !strings.Contains(err.Error(), "c:m") || !strings.Contains(err.Error(), "again after 2 refusals") || fault.HintOf(err) == "" {
		t.Errorf("error %v", err)
	}
	if len(f.requests) != DefaultRepeats+maxRefusals || len(eventtest.Bodies[event.ToolResult](events)) != DefaultRepeats+maxRefusals-1 {
		t.Errorf("%d requests, events %v", len(f.requests), types(events))
	}
}

func TestRefusalsInARowAreCounted(t *testing.T) {
	t.Parallel()
	look, other := chat.ToolCall{ID: "1", Name: "look", Arguments: "{}"}, chat.ToolCall{ID: "2", Name: "other", Arguments: "{}"}
	f := &fake{}
	for range 3 { // two are refused, then something else is called
		for range DefaultRepeats + maxRefusals - 1 {
			f.replies = append(f.replies, calls("", look))
		}
		f.replies = append(f.replies, calls("", other))
	}
	f.replies = append(f.replies, says("done"))
	rc, _ := newContext()
	req := user("hi")
	req.Tools = toolFunc(func(chat.ToolCall) string { return "seen" })
	if reply, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req); err != nil || reply.Text != "done" {
		t.Errorf("%q, %v", reply.Text, err)
	}
}

// TestRepeatsOfARequest sets the limits that child agents have.
func TestRepeatsOfARequest(t *testing.T) {
	t.Parallel()
	look := chat.ToolCall{ID: "1", Name: "look", Arguments: "{}"}
	f := &fake{}
	for range 5 {
		f.replies = append(f.replies, calls("", look))
	}
	f.replies = append(f.replies, says("enough"))
	made := 0
	rc, _ := newContext()
	req := user("hi")
	req.Repeats, req.Window = 4, 10
	req.Tools = toolFunc(func(chat.ToolCall) string { made++; return "seen" })
	reply, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req)
	if err != nil || made != 4 {
		t.Fatalf("%v, %d calls made, want 4", err, made)
	}
	last := reply.Messages[len(reply.Messages)-2].Text()
	if !strings.Contains(last, "tool_call_loop_alert") || strings.Contains(last, "call_history") {
		t.Errorf("the fifth call gets %s", last)
	}
}

// TestNoticeOfARound adds what the model has to know to the last result, and reads it back when
// the run is resumed.
func TestNoticeOfARound(t *testing.T) {
	t.Parallel()
	look := func(id string) chat.ToolCall {
		return chat.ToolCall{ID: id, Name: "look", Arguments: `{"n":"` + id + `"}`}
	}
	var rec record
	for run, notices := range [][]string{{"", "children wait"}, {"something new", "something new"}} {
		f := &fake{replies: [][]provider.Chunk{calls("", look("1"), look("2")), calls("", look("3"), look("4")), says("done")}}
		rc, _ := newContext()
		rc.Steps = steps.New(&rec)
		req := user("hi")
		req.Tools = toolFunc(func(chat.ToolCall) string { return "seen" })
		req.Notice = func(context.Context) string {
			n := notices[0]
			notices = notices[1:]
			return n
		}
		reply, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req)
		if err != nil {
			t.Fatal(err)
		}
		var results []string
		for _, m := range reply.Messages {
			if m.Role == chat.ToolRole {
				results = append(results, m.Text())
			}
		}
		if diff := cmp.Diff([]string{"seen", "seen", "seen", "seen\n\nchildren wait"}, results); diff != "" {
			t.Errorf("run %d: %s", run+1, diff)
		}
	}
}

// polled are tools whose results change by themselves.
type polled struct{ toolFunc }

func (polled) Instead(name string) string {
	if name == "look" {
		return "wait for it"
	}
	return ""
}

// TestPolling has a model wait for something with calls that are all the same.
func TestPolling(t *testing.T) {
	t.Parallel()
	look, other := chat.ToolCall{ID: "1", Name: "look", Arguments: "{}"}, chat.ToolCall{ID: "2", Name: "other", Arguments: "{}"}
	for _, tt := range []struct {
		name    string
		results []string // of the calls that are made
		repeats int
		want    string // results, "!" for a refusal
	}{
		{"changes_each_time", []string{"1", "2", "3", "4", "5", "6", "7", "8"}, 0, "1 2 3 4 5 6 7 8"},
		{"never_changes", []string{"1", "1", "1", "1", "1", "1"}, 0, "1 1 ! 1 1 ! 1 1"},
		{"changes_at_last", []string{"1", "1", "1", "1", "2", "2"}, 0, "1 1 ! 1 1 ! 2 2"},
		{"changes_back", []string{"1", "2", "2", "1", "1", "1"}, 0, "1 2 2 ! 1 1 ! 1"},
		{"child", []string{"1", "1", "1", "1", "1", "1", "1"}, 4, "1 1 1 1 ! 1 1 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &fake{}
			for range 8 {
				f.replies = append(f.replies, calls("", look))
			}
			f.replies = append(f.replies, says("done"))
			rc, _ := newContext()
			req := user("hi")
			req.Repeats = tt.repeats
			made := 0
			req.Tools = polled{func(chat.ToolCall) string { made++; return tt.results[made-1] }}
			reply, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req)
			if err != nil {
				t.Fatal(err)
			}
			var results []string
			for _, m := range reply.Messages {
				switch text := m.Text(); {
				case m.Role != chat.ToolRole:
				case strings.Contains(text, "tool_call_loop_alert"):
					if !strings.Contains(text, `"hint":"wait for it"`) || !m.Failed {
						t.Error(text)
					}
					results = append(results, "!")
				default:
					results = append(results, text)
				}
			}
			if got := strings.Join(results, " "); got != tt.want {
				t.Errorf("results %s, want %s", got, tt.want)
			}
		})
	}
	// Calls of other tools are stopped as ever.
	f := &fake{}
	for range 20 {
		f.replies = append(f.replies, calls("", other))
	}
	rc, _ := newContext()
	req := user("hi")
	req.Tools = polled{func(chat.ToolCall) string { return "seen" }}
	if _, err := newEngine(t, Model{Provider: f, SupportsTools: true}).Run(t.Context(), rc, req); fault.CodeOf(err) != fault.Provider || len(f.requests) != DefaultRepeats+maxRefusals {
		t.Errorf("%v after %d requests", err, len(f.requests))
	}
}
