package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"loki/internal/app"
	"loki/internal/base/fault"
	"loki/internal/frontend/api"
	"loki/internal/setup/config"
)

// serve serves until a signal ends it.
func (c *command) serve(ctx context.Context) error {
	if c.faces.Server == nil {
		return fault.New(fault.Usage, "this program does not serve")
	}
	address := c.opts.value
	if address == configuredAddress {
		address = ""
	}
	c.releaseSignals() // otherwise a second signal could be taken for the first one here, and lost
	return c.faces.Server(context.WithoutCancel(ctx), c.displayOptions(), address)
}

// serveMCP offers agents as tools to the MCP client at standard input and output.
func (c *command) serveMCP(ctx context.Context) error {
	if c.faces.MCP == nil {
		return fault.New(fault.Usage, "this program does not serve")
	}
	defer keepOnBrokenPipe()()
	return c.faces.MCP(ctx, c.displayOptions(), c.opts.agent)
}

// keepOnBrokenPipe has writes to a client that reads no more fail, until stop is called, instead of ending the process, which could end no work then.
func keepOnBrokenPipe() (stop func()) {
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGPIPE) // and not Ignore, which programs would inherit
	return func() { signal.Stop(ignored) }
}

// serveACP is an agent of the editor at standard input and output.
func (c *command) serveACP(ctx context.Context) error {
	if c.faces.ACP == nil {
		return fault.New(fault.Usage, "this program does not serve")
	}
	defer keepOnBrokenPipe()()
	return c.faces.ACP(ctx, c.displayOptions(), EditorSessions{c.opts.agent, c.opts.model, c.opts.role, c.opts.knowledge.base, c.opts.yes})
}

// healthPatience is how long a server may take to say that it works.
const healthPatience = 5 * time.Second

// healthcheck asks a server whether it works. A container does it every few seconds, so with a URL not even the
// configuration is read.
func (c *command) healthcheck(ctx context.Context) error {
	address, err := c.healthURL()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fault.Wrap(fault.Usage, err, "flag --healthcheck")
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return fault.Wrap(fault.Failure, err, "the server does not answer")
	}
	defer res.Body.Close()
	var h api.Health
	text, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // a body that ends early has no reason
	_ = json.Unmarshal(text, &h)
	if res.StatusCode != http.StatusOK {
		return fault.New(fault.Failure, "%s: %s", strings.TrimSpace(address+" answers "+res.Status), h.Reason)
	}
	fmt.Fprintln(c.Out, "ok")
	return nil
}

// healthURL returns where to ask: the URL of the command line, with the path of the probe unless it has one, or that of the
// server that the configuration describes.
func (c *command) healthURL() (string, error) {
	address := c.opts.value
	if address == configuredAddress {
		loaded, err := app.New(app.Options{Environ: c.environ})
		if err != nil {
			return "", err
		}
		defer func() { _ = loaded.Close() }() // nothing was started
		listens := config.DefaultListenAddr
		if set := loaded.Config.API; set != nil && set.ListenAddr != "" {
			listens = set.ListenAddr
		}
		host, port, err := net.SplitHostPort(listens)
		if err != nil || port == "0" {
			return "", fault.New(fault.Usage, "the port of the server at %s is not known", listens).WithHint("name its URL: loki --healthcheck http://127.0.0.1:3400")
		}
		if addr, err := netip.ParseAddr(host); host == "" || err == nil && addr.IsUnspecified() { // it listens at all addresses
			host = "localhost"
		}
		address = "http://" + net.JoinHostPort(host, port)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fault.New(fault.Usage, "flag --healthcheck: %q is not a URL that begins with http:// or https://", address).WithHint("loki --healthcheck http://127.0.0.1:3400")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/healthz/live"
	}
	return u.String(), nil
}
