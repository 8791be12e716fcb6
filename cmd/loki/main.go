// Command loki works with language models from the terminal.
package main

import (
	"context"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"

	"loki/internal/frontend/cli"
	"loki/internal/frontend/command/display"
	"loki/internal/frontend/repl"
	"loki/internal/frontend/server"
	"loki/internal/frontend/server/acpserver"
	"loki/internal/frontend/server/mcpserver"
	"loki/internal/llm/provider/wire"
)

func main() {
	if repl.Guard(os.Args[1:]) {
		return
	}
	delayCollection()
	proxyForAll()
	os.Exit(cli.Main(os.Args[1:], os.Environ(), cli.Terminal(), cli.Faces{REPL: repl.Run, Server: server.Serve, MCP: mcpserver.Serve, ACP: serveEditor}))
}

func serveEditor(ctx context.Context, o display.Options, with cli.EditorSessions) error {
	return acpserver.Serve(ctx, o, acpserver.Options(with))
}

// usualPercent is how much the heap grows between two garbage collections if GOGC does not say so.
const usualPercent = 100

// delayCollection has the first garbage collection happen when the heap has 32 MB, not 4 MB: reading
// the configuration and a session would take up to five of them, at a time when the user waits and
// nearly nothing is garbage. Later ones happen as usual.
func delayCollection() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(8 * usualPercent)
	canary := new([64]byte)
	runtime.AddCleanup(canary, func(percent int) { debug.SetGCPercent(percent) }, usualPercent)
}

// proxyForAll has the clients that share a transport use the same proxies as those of models.
func proxyForAll() {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t.Proxy = wire.EnvironmentProxy
	}
}
