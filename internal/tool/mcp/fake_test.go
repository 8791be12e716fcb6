package mcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The test binary is also the servers that misbehave, and the program that holds servers:
// LOKI_TEST_SERVER names which.
func TestMain(m *testing.M) {
	if kind := os.Getenv("LOKI_TEST_SERVER"); kind != "" {
		serve(kind)
		os.Exit(0)
	}
	if os.Getenv("LOKI_TEST_HOLDER") != "" {
		hold()
		os.Exit(0)
	}
	if os.Getenv("LOKI_TEST_CONFORMANCE") != "" {
		if err := conform(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Cursor    string          `json:"cursor"`
		Version   string          `json:"protocolVersion"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      struct {
			ProgressToken any `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
}

// serve is a server on standard input and output. What it does wrong is kind.
func serve(kind string) {
	switch kind {
	case "crash_at_start":
		fmt.Fprintln(os.Stderr, "no configuration found; password is", os.Getenv("PASSWORD"))
		os.Exit(3)
	case "silent":
		time.Sleep(time.Hour)
	case "garbage":
		for {
			fmt.Println("this is not a message, and there is a lot of it")
		}
	case "endless_line":
		for {
			fmt.Print(strings.Repeat("x", 1<<16))
		}
	case "greets":
		fmt.Println("Welcome to this server!\n\n[]\n{}")
	case "child":
		child := exec.Command("sleep", "3600")
		if err := child.Start(); err != nil {
			os.Exit(1)
		}
		fmt.Fprintln(os.Stderr, "child", child.Process.Pid)
	case "deaf": // does not end when its input does, nor by SIGTERM
		defer time.Sleep(time.Hour)
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<26)
	var asked json.RawMessage // id of a call that waits for an elicitation
	for in.Scan() {
		var r request
		if json.Unmarshal(in.Bytes(), &r) != nil {
			continue
		}
		if r.Method == "" && string(r.ID) == `"ask"` {
			reply(asked, map[string]any{"content": []any{map[string]any{"type": "text", "text": string(r.Result)}}})
			continue
		}
		if r.Method == "" && string(r.ID) == `"ping"` {
			reply(asked, map[string]any{"content": []any{map[string]any{"type": "text", "text": "done"}}})
			continue
		}
		if r.Method == "tools/call" && kind == "progress" {
			asked = r.ID
			send(map[string]any{"jsonrpc": "2.0", "method": "notifications/progress", "params": map[string]any{
				"progressToken": r.Params.Meta.ProgressToken, "progress": 1, "total": 4, "message": "a quarter",
			}})
			// The answer to this shows that the notification has been dealt with.
			send(map[string]any{"jsonrpc": "2.0", "id": "ping", "method": "ping"})
			continue
		}
		if r.Method == "tools/call" && r.Params.Name == "ask" {
			asked = r.ID
			send(map[string]any{"jsonrpc": "2.0", "id": "ask", "method": "elicitation/create", "params": json.RawMessage(form)})
			continue
		}
		if kind == "stops_reading" && r.Method == "notifications/initialized" {
			time.Sleep(time.Hour)
		}
		if r.ID != nil {
			respond(kind, r)
		}
	}
}

const form = `{"mode":"form","message":"Who\u001b[31m are you?","requestedSchema":{"type":"object","required":["name","age"],
"properties":{"name":{"type":"string","title":"Name","minLength":2},"age":{"type":"integer","minimum":18},
"news":{"type":"boolean","default":false},"colour":{"type":"string","enum":["r","g"],"enumNames":["red","green"]},
"note":{"type":"string"}}}}`

func send(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(append(text, '\n'))
}

func reply(id json.RawMessage, result any) {
	if os.Getenv("LOKI_TEST_SERVER") == "text_ids" {
		id = []byte(strconv.Quote(string(id)))
	}
	send(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

func respond(kind string, r request) {
	switch r.Method {
	case "initialize":
		if kind == "closes_early" {
			os.Exit(0)
		}
		if only, ok := strings.CutPrefix(kind, "only_"); ok && r.Params.Version != only {
			message := "unsupported protocol version: " + r.Params.Version
			e := map[string]any{"code": -32602, "message": message, "data": map[string]any{"supported": []string{only}}}
			if only == "2024-11-05" {
				delete(e, "data")
			}
			send(map[string]any{"jsonrpc": "2.0", "id": r.ID, "error": e})
			return
		}
		if kind == "list_at_start" || kind == "nothing_at_start" {
			reply(r.ID, map[string]any{"list_at_start": []int{}, "nothing_at_start": map[string]any{}}[kind])
			return
		}
		if kind == "true_capabilities" {
			reply(r.ID, map[string]any{
				"protocolVersion": "2025-11-25", "serverInfo": map[string]any{"name": kind, "version": 1},
				"capabilities": map[string]any{"tools": true, "resources": false, "tasks": []int{1}},
			})
			return
		}
		capabilities := map[string]any{"tools": map[string]any{"listChanged": true}}
		if kind == "unlocks" {
			capabilities["resources"] = map[string]any{}
		}
		reply(r.ID, map[string]any{
			"protocolVersion": "2025-11-25", "serverInfo": map[string]any{"name": kind, "version": "1"},
			"capabilities": capabilities,
		})
	case "tools/list":
		listTools(kind, r)
	case "tools/call":
		callTool(kind, r)
	case "ping":
		if kind != "hangs" {
			reply(r.ID, map[string]any{})
		}
	}
}

func listTools(kind string, r request) {
	object := map[string]any{"type": "object"}
	named := func(name string, schema any) map[string]any {
		return map[string]any{"name": name, "description": "does " + name, "inputSchema": schema}
	}
	switch kind {
	case "odd_tools":
		huge := map[string]any{}
		for i := range 5000 {
			huge["property"+strconv.Itoa(i)] = map[string]any{"type": "string", "description": "one of many"}
		}
		wipe := named("wipe", object)
		wipe["annotations"] = map[string]any{"destructiveHint": true}
		read := named("read", object)
		read["annotations"] = map[string]any{"readOnlyHint": true, "destructiveHint": true}
		reply(r.ID, map[string]any{"tools": []any{
			named("twice", object), named("twice", object), named("", object), named("näme with.dots", object),
			named("n_me with.dots", object), named("bad_schema", map[string]any{"properties": map[string]any{"a": map[string]any{"type": 5}}}), named("no_object", "schema"),
			named("huge", map[string]any{"type": "object", "properties": huge}), wipe, read,
			named("long_"+strings.Repeat("x", 100), object), named(strings.Repeat("y", 300), object),
		}})
	case "many":
		page, _ := strconv.Atoi(r.Params.Cursor)
		var tools []any
		for i := range 1000 {
			tools = append(tools, named(fmt.Sprintf("tool_%d", page*1000+i), object))
		}
		result := map[string]any{"tools": tools}
		if page < 19 {
			result["nextCursor"] = strconv.Itoa(page + 1)
		}
		reply(r.ID, result)
	case "endless":
		reply(r.ID, map[string]any{"tools": []any{}, "nextCursor": r.Params.Cursor + "x"})
	case "same_cursor":
		reply(r.ID, map[string]any{"tools": []any{named("echo", object)}, "nextCursor": "8"})
	case "wrong_list":
		reply(r.ID, map[string]any{"tools": "none"})
	default:
		tools := []any{named("echo", object), named("env", object), named("ask", object)}
		if unlocked {
			tools = append(tools, named("secret", object))
		}
		reply(r.ID, map[string]any{"tools": tools})
	}
}

// unlocked says that a call of the server "unlocks" was made, after which it has another tool.
var unlocked bool

func callTool(kind string, r request) {
	text := func(s string) map[string]any { return map[string]any{"type": "text", "text": s} }
	result := func(s string) { reply(r.ID, map[string]any{"content": []any{text(s)}}) }
	switch {
	case kind == "hangs":
	case kind == "crash_in_call":
		fmt.Fprintln(os.Stderr, "segmentation fault, as it were")
		os.Exit(7)
	case kind == "giant":
		result(strings.Repeat("x", 8<<20))
	case kind == "error":
		send(map[string]any{"jsonrpc": "2.0", "id": r.ID, "error": map[string]any{"code": -32602, "message": "bad arguments"}})
	case kind == "is_error":
		reply(r.ID, map[string]any{"isError": true, "content": []any{text("no such issue")}})
	case kind == "rich":
		reply(r.ID, map[string]any{
			"content": []any{
				text("one"), map[string]any{"type": "image", "mimeType": "image/png", "data": "AAAA"}, text("two"),
			},
			"structuredContent": map[string]any{"n": 1},
		})
	case kind == "unlocks":
		unlocked = true
		send(map[string]any{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
		result("unlocked")
	case kind == "changes":
		send(map[string]any{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
		result("changed")
	case r.Params.Name == "env":
		result(strings.Join(os.Environ(), "\n"))
	case r.Params.Name == "pid":
		result(strconv.Itoa(os.Getpid()))
	default:
		result(string(r.Params.Arguments))
	}
}
