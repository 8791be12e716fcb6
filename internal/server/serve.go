package server

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"loki/internal/display"
	"loki/internal/event"
)

// Serve serves until a signal ends it. address is where, or empty for what the configuration says. It prints
// one line on o.Err when it accepts connections.
func Serve(ctx context.Context, o display.Options, address string) error {
	observer, observed := o.App.Observe(ctx)
	defer func() {
		for _, w := range observed(context.WithoutCancel(ctx)) {
			o.Warn(w)
		}
	}()
	ctx = event.NewContext(ctx, o.App.Events(observer))
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	s, err := Start(ctx, Options{App: o.App, Address: address, Warn: o.Warn})
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Err, "listening on http://%s\n", s.Addr())
	select {
	case <-signals:
	case <-ctx.Done():
	}
	signal.Stop(signals) // a second signal ends the process at once
	return s.Shutdown(context.WithoutCancel(ctx), 30*time.Second)
}
