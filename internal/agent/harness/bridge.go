package harness

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"loki/internal/agent/harness/acp"
	"loki/internal/base/fault"
	"loki/internal/base/process/sandbox"
	"loki/internal/llm/chat"
	"loki/internal/llm/event"
)

// serverName is the name of the MCP server that programs get.
const serverName = "loki"

// bridge is the MCP server through which a program calls the tools of its agent.
type bridge struct {
	server *http.Server
	tools  *mcp.Server
	end    context.CancelFunc // ends the calls at work
	listen net.Listener
	port   int
	dial   sandbox.Dialer // nil where the program reaches the port by itself
	served sync.WaitGroup
}

// bridgePort is the port of the server where the program has a network of its own.
const bridgePort = 17_321

// serveTools starts the server, if the agent has tools. It is nil without them.
func (t *talk) serveTools(ctx context.Context) (*bridge, error) {
	t.servers = []acp.MCPServer{}
	if t.a.Tools == nil || len(t.a.Tools.Declarations()) == 0 {
		return nil, nil
	}
	working, end := context.WithCancel(ctx)
	server := mcp.NewServer(&mcp.Implementation{Name: serverName, Title: "Loki", Version: t.p.Version}, nil)
	for _, d := range t.a.Tools.Declarations() {
		schema := d.Parameters
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		server.AddTool(&mcp.Tool{Name: d.Name, Description: d.Description, InputSchema: schema}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			ctx, cancel := context.WithCancel(ctx) // which is that of the session
			defer cancel()
			defer context.AfterFunc(working, cancel)()
			return t.callTool(ctx, d.Name, r.Params.Arguments)
		})
	}
	token := rand.Text()
	streams := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	b := &bridge{tools: server, end: end, server: &http.Server{
		ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+token {
				http.Error(w, "unauthorized", http.StatusUnauthorized)
				return
			}
			streams.ServeHTTP(w, r)
		}),
	}}
	if t.p.Confined() && t.p.Sandbox.Support().Networks {
		in := newPipes(bridgePort)
		b.listen, b.port, b.dial = in, bridgePort, in.dial
	} else {
		listen, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			end()
			return nil, fault.Wrap(fault.Tool, err, "the tools of agent %s cannot be served", t.p.Agent)
		}
		b.listen, b.port = listen, listen.Addr().(*net.TCPAddr).Port
	}
	b.served.Go(func() { _ = b.server.Serve(b.listen) }) // ends when the server is closed
	t.servers = append(t.servers, acp.MCPServer{
		Type: "http", Name: serverName, URL: "http://127.0.0.1:" + strconv.Itoa(b.port) + "/mcp",
		Headers: []acp.EnvVariable{{Name: "Authorization", Value: "Bearer " + token}},
	})
	return b, nil
}

// offer leaves out the server if the program cannot reach one by HTTP.
func (t *talk) offer(ctx context.Context) error {
	if len(t.servers) == 0 || t.can.AgentCapabilities.MCPCapabilities.HTTP {
		return nil
	}
	t.servers = []acp.MCPServer{}
	return t.rc.Events.Emit(ctx, event.Warning{Text: t.p.Name + " cannot use the tools of agent " + t.p.Agent + ": it does not take MCP servers by HTTP", Once: true})
}

// callTool makes a call of a tool of the agent.
func (t *talk) callTool(ctx context.Context, name string, args json.RawMessage) (*mcp.CallToolResult, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	st, err := t.fresh(ctx, "tool", name, args)
	if err != nil {
		return nil, err
	}
	text, failed, err := t.a.Tools.Call(ctx, chat.ToolCall{ID: st.Key("id"), Name: name, Arguments: string(args)}, st)
	if err != nil {
		if ctx.Err() == nil {
			t.fail(err)
		}
		return nil, err
	}
	if err := t.over(ctx, st); err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: failed}, nil
}

// close ends the server, and the calls at work, which it waits for. A nil bridge has none.
func (b *bridge) close() {
	if b == nil {
		return
	}
	b.end()
	_ = b.server.Close()
	b.served.Wait()
	for s := range b.tools.Sessions() {
		_ = s.Close() // waits for its calls
	}
}

// reach leads the program to the server.
func (b *bridge) reach() map[int]sandbox.Dialer {
	if b == nil || b.dial == nil {
		return nil
	}
	return map[int]sandbox.Dialer{b.port: b.dial}
}

// pipes is a listener whose connections are pipes in this process.
type pipes struct {
	port   int
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes(port int) *pipes {
	return &pipes{port: port, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// dial is a [sandbox.Dialer].
func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements [net.Listener].
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements [net.Listener].
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: p.port} }
