package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"loki/internal/base/fault"
	"loki/internal/frontend/command/display"
	"loki/internal/frontend/server/rest"
	"loki/internal/llm/event"
)

// Serve serves until a signal ends it: SIGTERM or SIGINT. SIGHUP has it read its configuration again. It
// prints one line on o.Err when it accepts connections. address is where, or empty for what the
// configuration says.
func Serve(ctx context.Context, o display.Options, address string) error {
	observer, observed := o.App.ObserveServer(ctx, rest.LogAttrs)
	defer func() {
		for _, w := range observed(context.WithoutCancel(ctx)) {
			o.Warn(w)
		}
	}()
	ctx = event.NewContext(ctx, o.App.Events(observer))
	stop, hangup := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)

	s, err := Start(ctx, Options{App: o.App, Address: address, Warn: o.Warn, Log: o.App.Log(), Observer: observer})
	if err != nil {
		return err
	}
	if s.Addr() == NoAddress {
		fmt.Fprintln(o.Err, "working without a port")
	} else {
		fmt.Fprintf(o.Err, "listening on http://%s\n", s.Addr())
	}
	notify := func(state string) {
		if err := notifySystemd(o.App.Env.Get("NOTIFY_SOCKET"), state); err != nil {
			o.Warn(err.Error())
		}
	}
	notify("READY=1")
	for {
		select {
		case <-hangup:
			s.reload(ctx, o.Err)
			continue
		case err := <-s.served: // before it was asked to
			return fault.Wrap(fault.Failure, err, "the server cannot accept connections any more")
		case <-stop:
		case <-ctx.Done():
		}
		break
	}
	signal.Stop(stop) // a second signal ends the process at once
	notify("STOPPING=1")
	if n := s.api.Busy(); n > 0 {
		fmt.Fprintf(o.Err, "stopping: waiting up to %v for %d requests; a second signal ends them at once\n", s.settings.Load().ShutdownGrace, n)
	}
	return s.Shutdown(ctx)
}

// reload reads the configuration again and reports the result on w.
func (s *Server) reload(ctx context.Context, w io.Writer) {
	fixed, err := s.Reload(ctx)
	switch {
	case err != nil:
		s.o.Log.Error("the configuration was read again, and nothing has changed", "error", err.Error())
		fmt.Fprintf(w, "the configuration was read again, and nothing has changed: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	case len(fixed) > 0:
		s.o.Log.Warn("the configuration was read again", "needs_restart", fixed)
		fmt.Fprintf(w, "the configuration was read again; what needs a restart: %s\n", strings.Join(fixed, ", "))
	default:
		s.o.Log.Info("the configuration was read again")
		fmt.Fprintln(w, "the configuration was read again")
	}
}

// notifySystemd tells systemd how the service is. Without a socket it does nothing.
//
// Source: sd_notify(3).
func notifySystemd(socket, state string) error {
	if socket == "" {
		return nil
	}
	if name, ok := strings.CutPrefix(socket, "@"); ok {
		socket = "\x00" + name
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	defer conn.Close()
	_, err = conn.Write([]byte(state))
	return err
}
