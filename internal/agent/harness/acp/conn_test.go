package acp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"loki/internal/agent/harness/acp"
)

// side is a handler made of functions.
type side struct {
	notice  func(method string, params json.RawMessage)
	request func(ctx context.Context, method string, params json.RawMessage) acp.Answer
}

func (s side) Notice(_ context.Context, method string, params json.RawMessage) {
	if s.notice != nil {
		s.notice(method, params)
	}
}

func (s side) Request(ctx context.Context, method string, params json.RawMessage) acp.Answer {
	if s.request != nil {
		return s.request(ctx, method, params)
	}
	return nil
}

// pair connects two sides until the test ends. Hang ends the connection, for the client first: nothing of the agent reaches it then.
func pair(t *testing.T, of func(agent, client *acp.Conn) (side, side)) (agent, client *acp.Conn, hang func()) {
	t.Helper()
	toAgent, fromClient := io.Pipe()
	toClient, fromAgent := io.Pipe()
	handlers := make([]side, 2)
	lazy := func(i int) acp.Handler {
		return side{
			notice: func(method string, params json.RawMessage) { handlers[i].Notice(t.Context(), method, params) },
			request: func(ctx context.Context, method string, params json.RawMessage) acp.Answer {
				return handlers[i].Request(ctx, method, params)
			},
		}
	}
	agent, client = acp.New(toAgent, fromAgent, lazy(0)), acp.New(toClient, fromClient, lazy(1))
	handlers[0], handlers[1] = of(agent, client)
	hang = sync.OnceFunc(func() { _ = errors.Join(fromAgent.Close(), fromClient.Close()) })
	var serving sync.WaitGroup
	for _, c := range []*acp.Conn{agent, client} {
		serving.Go(func() {
			if err := c.Serve(t.Context()); err != nil {
				t.Errorf("Serve: %v", err)
			}
		})
	}
	t.Cleanup(func() { hang(); serving.Wait() })
	return agent, client, hang
}

// TestTurn: a prompt is answered after its updates, and in between the agent asks the client.
func TestTurn(t *testing.T) {
	t.Parallel()
	var heard []string
	_, client, _ := pair(t, func(agent, _ *acp.Conn) (side, side) {
		ours := func(ctx context.Context, method string, params json.RawMessage) acp.Answer {
			return func() (any, error) {
				var p acp.PromptRequest
				if err := acp.Decode(params, &p); err != nil {
					return nil, err
				}
				for i := range 100 {
					if err := agent.Notify(acp.SessionUpdate, acp.SessionNotification{SessionID: p.SessionID, Update: acp.Chunk{
						Kind: acp.AgentMessageChunk, Content: acp.Text(fmt.Sprint(method, i)),
					}}); err != nil {
						return nil, err
					}
				}
				var r acp.PermissionResponse
				err := agent.Call(ctx, acp.RequestPermission, acp.PermissionRequest{SessionID: p.SessionID, Options: []acp.PermissionOption{}}, &r)
				return acp.PromptResponse{StopReason: r.Outcome.OptionID}, err
			}
		}
		return side{request: ours}, side{
			notice: func(_ string, params json.RawMessage) {
				var n acp.SessionNotification
				if err := json.Unmarshal(params, &n); err != nil {
					t.Error(err)
					return
				}
				heard = append(heard, n.Update.(*acp.Chunk).Content.Text)
			},
			request: func(context.Context, string, json.RawMessage) acp.Answer {
				return func() (any, error) {
					return acp.PermissionResponse{Outcome: acp.PermissionOutcome{Outcome: "selected", OptionID: acp.EndTurn}}, nil
				}
			},
		}
	})
	var r acp.PromptResponse
	if err := client.Call(t.Context(), acp.SessionPrompt, acp.PromptRequest{SessionID: "s", Prompt: []acp.ContentBlock{acp.Text("hi")}}, &r); err != nil {
		t.Fatal(err)
	}
	if len(heard) != 100 || heard[99] != "session/prompt99" || r.StopReason != acp.EndTurn {
		t.Errorf("%d updates came before the answer %v", len(heard), r)
	}
	var failure *acp.Error
	if err := client.Call(t.Context(), acp.SessionPrompt, map[string]any{"sessionId": "s"}, nil); !errors.As(err, &failure) || failure.Code != acp.InvalidParams || fmt.Sprint(failure.Data) != "map[path:prompt]" {
		t.Errorf("a prompt without content: %v, %v", err, failure)
	}
}

// TestCancel: who calls can cancel, and the other side learns of it.
func TestCancel(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan struct{}), make(chan error, 1)
	_, client, _ := pair(t, func(_, _ *acp.Conn) (side, side) {
		return side{request: func(ctx context.Context, method string, _ json.RawMessage) acp.Answer {
			if method != "wait" {
				return nil
			}
			return func() (any, error) {
				close(begun)
				<-ctx.Done()
				ended <- ctx.Err()
				return nil, ctx.Err()
			}
		}}, side{}
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }() // ends with the request
	if err := client.Call(ctx, "wait", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the call: %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the work: %v", err)
	}
	var failure *acp.Error
	if err := client.Call(t.Context(), "another", nil, nil); !errors.As(err, &failure) || failure.Code != acp.MethodNotFound { // the connection is as it was
		t.Errorf("after it: %v", err)
	}
}

// TestEnd: calls that wait fail when the connection ends, and later ones do.
func TestEnd(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	_, client, hang := pair(t, func(_, _ *acp.Conn) (side, side) {
		return side{request: func(ctx context.Context, _ string, _ json.RawMessage) acp.Answer {
			return func() (any, error) {
				close(begun)
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}}, side{}
	})
	go func() { <-begun; hang() }() // ends with the request
	for range 2 {
		if err := client.Call(t.Context(), "wait", nil, nil); !errors.Is(err, acp.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%v", err)
		}
	}
}

// serve returns what a connection answers to an input.
func serve(t testing.TB, input string) []map[string]any {
	var out bytes.Buffer
	conn := acp.New(strings.NewReader(input), &out, side{request: func(ctx context.Context, method string, _ json.RawMessage) acp.Answer {
		switch method {
		case "late":
			return func() (any, error) { <-ctx.Done(); return nil, errors.New("it failed") }
		case "echo":
			return func() (any, error) { return map[string]string{"method": method}, nil }
		case "fail":
			return func() (any, error) { return nil, errors.New("it failed") }
		case "unsayable":
			return func() (any, error) { return func() {}, nil }
		}
		return nil
	}})
	if err := conn.Serve(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	lines := bufio.NewScanner(&out)
	lines.Buffer(nil, acp.MaxLine)
	for lines.Scan() {
		var m map[string]any
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		all = append(all, m)
	}
	return all
}

// TestLines: what is no message is answered, and the next line is served.
func TestLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"method":"echo"}`:       `map[id:7 jsonrpc:2.0 result:map[method:echo]]`,
		`{"jsonrpc":"2.0","id":"a","method":"fail"}`:     `map[error:map[code:-32603 message:it failed] id:a jsonrpc:2.0]`,
		`{"jsonrpc":"2.0","id":"b","method":"late"}`:     `map[error:map[code:-32603 message:it failed] id:b jsonrpc:2.0]`, // after the end of the input
		`{"jsonrpc":"2.0","id":null,"method":"nothing"}`: `map[error:map[code:-32601 message:Method not found: "nothing"] id:<nil> jsonrpc:2.0]`,
		`{"jsonrpc":"2.0","id":1,"method":"unsayable"}`:  `-32603`,
		`{"jsonrpc":"2.0","method":"echo"}`:              ``,
		`{"jsonrpc":"2.0","id":7,"result":{}}`:           ``, // no call waits for it
		`nonsense`:                                       `-32700`,
		`{"jsonrpc":"2.0","id":1`:                        `-32700`,
		`[]`:                                             `-32600`,
		`null`:                                           `-32600`,
		`{"id":1,"method":"echo"}`:                       `-32600`,
		`{"jsonrpc":"2.0","id":{},"method":"echo"}`:      `-32600`,
		`{"jsonrpc":"2.0","id":1.5,"method":"echo"}`:     `-32600`,
		`{"jsonrpc":"2.0","id":1}`:                       `-32600`,
		`{"jsonrpc":"2.0","id":1,"error":"text"}`:        `-32600`,
		strings.Repeat("x", acp.MaxLine+1):               `-32700`,
	} {
		got := serve(t, "\n  \n"+line+"\n"+`{"jsonrpc":"2.0","id":99,"method":"echo"}`)
		wanted := 2
		if want == "" {
			wanted = 1
		}
		if len(got) != wanted || want != "" && !strings.Contains(fmt.Sprint(got), want) || !strings.Contains(fmt.Sprint(got), "id:99 jsonrpc:2.0 result") {
			t.Errorf("%.80s: got %.300v, want %s and an answer to the next request", line, got, want)
		}
	}
}

func FuzzServe(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":7,"method":"echo","params":[1]}`, "{}\n[]\n\x00", `{"jsonrpc":"2.0","id":1,"method":"echo"}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"echo"}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}`, `{"id":1,"result":null}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input string) { serve(t, input) })
}

func FuzzUpdate(f *testing.F) {
	for _, update := range []any{
		acp.Chunk{Kind: acp.AgentMessageChunk, Content: acp.Text("x")},
		acp.ToolCall{Kind: acp.ToolCallBegins, ToolCallID: "1", Title: "t"},
		acp.Plan{Kind: acp.PlanUpdate, Entries: []acp.PlanEntry{}},
		acp.Usage{Kind: acp.UsageUpdate},
		acp.Commands{Kind: acp.CommandsUpdate},
		acp.CurrentMode{Kind: acp.ModeUpdate},
		acp.ConfigOptions{Kind: acp.ConfigOptionsUpdate},
		acp.SessionTitle{Kind: acp.SessionInfoUpdate},
		acp.Notice{Kind: acp.NoticeUpdate},
		acp.Compaction{Kind: acp.CompactionUpdate},
		json.RawMessage(`{"sessionUpdate":"another"}`),
	} {
		line, err := json.Marshal(acp.SessionNotification{SessionID: "s", Update: update})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(line))
	}
	f.Fuzz(func(t *testing.T, text string) {
		var n acp.SessionNotification
		if json.Unmarshal([]byte(text), &n) != nil {
			return
		}
		line, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		var again acp.SessionNotification
		if err := json.Unmarshal(line, &again); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	})
}
