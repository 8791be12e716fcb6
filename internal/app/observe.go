package app

import (
	"context"
	"fmt"
	"log/slog"

	"loki/internal/event"
	"loki/internal/logging"
	"loki/internal/telemetry"
)

// Log returns the logger that Observe has opened. Before, nothing is logged.
func (a *App) Log() *slog.Logger {
	if l := a.log.Load(); l != nil {
		return l
	}
	return slog.New(slog.DiscardHandler)
}

// Observe returns an emitter that writes the log file and, if the OTEL_* variables ask
// for it, sends traces. The caller calls done when the work is over; it returns what
// the user should be warned of.
func (a *App) Observe(ctx context.Context) (e event.Emitter, done func(context.Context) (warnings []string)) {
	var warnings []string
	logger, file, err := logging.Open(logging.Options{
		Path: a.Paths.LogFile, Level: a.Env.Get("LOKI_LOG_LEVEL"), Filter: a.Env.Get("LOKI_LOG_FILTER"), Hide: a.used.Text,
	})
	if err != nil {
		warnings = append(warnings, err.Error())
	}
	if level := a.Env.Get("LOKI_LOG_LEVEL"); level != "" && !logging.IsLevel(level) {
		warnings = append(warnings, fmt.Sprintf("LOKI_LOG_LEVEL is ignored: want off, error, warn, info, debug or trace, not %q", level))
	}
	a.log.Store(logger)
	tracer, err := telemetry.Start(ctx, a.Env.Get, Version)
	if err != nil {
		warnings = append(warnings, err.Error())
	}
	return event.Tee(logging.Emitter(logger), tracer.Emitter()), func(ctx context.Context) []string {
		if err := tracer.Shutdown(ctx); err != nil {
			warnings = append(warnings, err.Error())
		}
		if err := file.Close(); err != nil {
			warnings = append(warnings, err.Error())
		}
		return warnings
	}
}
