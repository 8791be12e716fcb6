package todo_test

import (
	"encoding/json"
	"strings"
	"testing"

	"loki/internal/agent/team/todo"
	"loki/internal/base/fault/steps"
	"loki/internal/llm/chat"
	"loki/internal/tool"
	"loki/internal/tool/tooltest"
)

func TestTools(t *testing.T) {
	t.Parallel()
	var l todo.List
	set, err := tool.NewSet(todo.Tools(&l)...)
	if err != nil {
		t.Fatal(err)
	}
	box := tool.NewBox(tool.Options{Tools: set})
	for _, tt := range []struct {
		tool, args, want string
		revision         int
	}{
		{"todo__list", `{}`, `{"goal":"","todos":[]}`, 0},
		{"todo__init", `{"goal": "write"}`, `{"status":"ok","message":"The todo list was started. Add tasks with todo__add."}`, 1},
		{"todo__list", `{}`, `{"goal":"","todos":[]}`, 1},
		{"todo__add", `{"task": "think"}`, `{"status":"ok","id":1}`, 2},
		{"todo__add", `{"task": "type"}`, `{"status":"ok","id":2}`, 3},
		{"todo__add", `{"task": " "}`, `{"error":"the task is empty"}`, 3},
		{"todo__done", `{"id": "1"}`, `{"status":"ok","message":"Task 1 is done; 1 open."}`, 4},
		{"todo__done", `{"id": 1}`, `{"status":"ok","message":"Task 1 is done; 1 open."}`, 4},
		{"todo__done", `{"id": 7}`, `{"error":"there is no task with the id 7"}`, 4},
		{"todo__done", `{"id": "x"}`, `{"tool_call_error":"todo__done was not run: argument \"id\" must be of type integer, not the string \"x\". Write the call again."}`, 4},
		{"todo__list", `{}`, `{"goal":"write","todos":[{"id":1,"desc":"think","done":true},{"id":2,"desc":"type","done":false}]}`, 4},
	} {
		text, _, err := box.Call(t.Context(), chat.ToolCall{Name: tt.tool, Arguments: tt.args}, steps.Steps{})
		if err != nil || text != tt.want || l.Revision() != tt.revision {
			t.Errorf("%s %s: got %s, %v, revision %d; want %s, %d", tt.tool, tt.args, text, err, l.Revision(), tt.want, tt.revision)
		}
	}
	if got, want := l.Render(), "Goal: write\nProgress: 1/2 completed\n  ✓ 1. think\n  ○ 2. type"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	copied := l.Clone()
	if _, _, err := box.Call(t.Context(), chat.ToolCall{Name: "todo__clear"}, steps.Steps{}); err != nil || len(l.Items()) != 0 || strings.Contains(l.Render(), "write") || copied.Open() != 1 {
		t.Errorf("%v, %v left, %d open in the copy", err, l.Items(), copied.Open())
	}
}

func TestListAsJSON(t *testing.T) {
	t.Parallel()
	var l todo.List
	if err := json.Unmarshal([]byte(`{"goal":"g","todos":[{"id":4,"description":"old","done":true}]}`), &l); err != nil {
		t.Fatal(err)
	}
	if id := l.Add("new"); id != 5 {
		t.Errorf("the id is %d", id)
	}
	data, err := json.Marshal(&l)
	if want := `{"goal":"g","todos":[{"id":4,"desc":"old","done":true},{"id":5,"desc":"new","done":false}]}`; err != nil || string(data) != want {
		t.Errorf("got %s, %v", data, err)
	}
}

func TestConformance(t *testing.T) {
	good := map[string]string{"todo__add": `{"task": "x"}`, "todo__done": `{"id": 1}`}
	for _, subject := range todo.Tools(new(todo.List)) {
		name := subject.Declaration().Name
		args, ok := good[name]
		if !ok {
			args = `{"goal": "g"}`
		}
		t.Run(name, func(t *testing.T) {
			tooltest.Run(t, tooltest.Case{New: func(testing.TB) tool.Tool { return subject }, Good: []string{args}})
		})
	}
}
