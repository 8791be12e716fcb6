package app

import (
	"context"
	"log/slog"

	"loki/internal/llm/event"
	"loki/internal/llm/event/logging"
	"loki/internal/setup/config"
)

// Observe returns an emitter that writes the log file and, if the OTEL_* variables ask
// for it, sends traces and metrics. The caller calls done when the work is over; it returns what
// the user should be warned of.
func (a *App) Observe(ctx context.Context) (e event.Emitter, done func(context.Context) (warnings []string)) {
	return a.Start(ctx, logging.Options{Path: a.Paths.LogFile, Hide: a.used.Text})
}

// ObserveServer is [App.Observe] for a server, whose log is as the section api of the configuration says. known returns what is
// known of the request that a context belongs to.
func (a *App) ObserveServer(ctx context.Context, known func(context.Context) []slog.Attr) (e event.Emitter, done func(context.Context) (warnings []string)) {
	c := a.Config.API
	if c == nil {
		c = config.DefaultAPI()
	}
	return a.Start(ctx, logging.Options{Path: a.Paths.LogFile, Hide: a.used.Text, Level: c.LogLevel, JSON: c.LogFormat == "json", Context: known})
}
