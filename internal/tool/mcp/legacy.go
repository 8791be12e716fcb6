package mcp

//lint:file-ignore SA1019 Newer versions of the protocol give up roots and logging. Today's servers have them.

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"

	"loki/internal/base/text"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// offerRoots announces to servers that they can ask for the roots.
func offerRoots(options *sdk.ClientOptions) {
	options.Capabilities.RootsV2 = &sdk.RootCapabilities{}
}

// setRoot makes the working directory the root, if it is set.
func (c *conn) setRoot(client *sdk.Client) {
	if c.opts.Dir == "" {
		return
	}
	dir, err := filepath.Abs(c.opts.Dir)
	if err != nil {
		return
	}
	path := filepath.ToSlash(dir)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/...
	}
	root := url.URL{Scheme: "file", Path: path}
	client.AddRoots(&sdk.Root{URI: root.String(), Name: filepath.Base(dir)})
}

// takeLogs has log entries of the server passed to the log.
func (c *conn) takeLogs(options *sdk.ClientOptions) { options.LoggingMessageHandler = c.logMessage }

// askForLogs sets the log level of the server, if it supports that.
func (c *conn) askForLogs(ctx context.Context) {
	if c.can.Logging == nil || c.session.InitializeResult().ProtocolVersion > protocol {
		return
	}
	level := sdk.LoggingLevel("warning")
	switch {
	case !c.log.Enabled(ctx, slog.LevelError):
		return
	case c.log.Enabled(ctx, slog.LevelDebug):
		level = "debug"
	case c.log.Enabled(ctx, slog.LevelInfo):
		level = "info"
	}
	limit, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := c.session.SetLoggingLevel(limit, &sdk.SetLoggingLevelParams{Level: level}); err != nil {
		c.log.Debug("MCP server does not accept a log level", "error", c.server.redact(err.Error()))
	}
}

// logMessage passes a log entry of the server to the log.
func (c *conn) logMessage(ctx context.Context, req *sdk.LoggingMessageRequest) {
	level := slog.LevelInfo
	switch req.Params.Level {
	case "debug":
		level = slog.LevelDebug
	case "warning":
		level = slog.LevelWarn
	case "error", "critical", "alert", "emergency":
		level = slog.LevelError
	}
	if !c.log.Enabled(ctx, level) {
		return
	}
	line := fmt.Sprint(req.Params.Data)
	if s, ok := req.Params.Data.(string); ok {
		line = s
	}
	c.log.Log(ctx, level, text.Cut(c.server.redact(line), 4<<10), "mcp_logger", req.Params.Logger)
}
