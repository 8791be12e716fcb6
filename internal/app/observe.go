package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"loki/internal/llm/event"
	"loki/internal/llm/event/logging"
	"loki/internal/llm/event/telemetry"
	"loki/internal/setup/config"
)

// Log returns the logger that Observe has opened. Before, nothing is logged.
func (a *App) Log() *slog.Logger {
	if l := a.log.Load(); l != nil {
		return l
	}
	return slog.New(slog.DiscardHandler)
}

// Observe returns an emitter that writes the log file and, if the OTEL_* variables ask
// for it, sends traces and metrics. The caller calls done when the work is over; it returns what
// the user should be warned of.
func (a *App) Observe(ctx context.Context) (e event.Emitter, done func(context.Context) (warnings []string)) {
	return a.observe(ctx, logging.Options{Level: a.readLogSettings().level})
}

// ObserveServer is [App.Observe] for a server, whose log is as the section api of the configuration says. known returns what is
// known of the request that a context belongs to.
func (a *App) ObserveServer(ctx context.Context, known func(context.Context) []slog.Attr) (e event.Emitter, done func(context.Context) (warnings []string)) {
	c := a.Config.API
	if c == nil {
		c = config.DefaultAPI()
	}
	return a.observe(ctx, logging.Options{Level: a.logLevel(c), JSON: c.LogFormat == "json", Context: known})
}

// logLevel returns how much a server logs.
func (a *App) logLevel(c *config.API) string { return cmp.Or(a.readLogSettings().level, c.LogLevel) }

// logSettings are what the environment says of the log.
type logSettings struct{ level, filter string }

// readLogSettings reads LOKI_LOG_LEVEL and LOKI_LOG_FILTER. A level such as provider=trace is a filter. Without both, the entries of
// RUST_LOG about this program are the filter, such as loki=debug or loki::graph=debug.
func (a *App) readLogSettings() logSettings {
	s := logSettings{a.Env.Get("LOKI_LOG_LEVEL"), a.Env.Get("LOKI_LOG_FILTER")}
	if strings.ContainsAny(s.level, "=,") {
		s.filter, s.level = strings.Trim(s.filter+","+s.level, ","), ""
	}
	if s != (logSettings{}) {
		return s
	}
	for entry := range strings.SplitSeq(a.Env.Get("RUST_LOG"), ",") {
		if entry = strings.TrimSpace(entry); entry == "loki" {
			entry = "loki=trace"
		}
		if strings.HasPrefix(entry, "loki=") || strings.HasPrefix(entry, "loki::") {
			s.filter = strings.Trim(s.filter+","+entry, ",")
		}
	}
	return s
}

// Relevel has the log of a server hold as much as a new configuration says.
func (a *App) Relevel(c *config.API) error {
	if f := a.logFile.Load(); f != nil {
		return f.SetLevel(a.logLevel(c), a.readLogSettings().filter)
	}
	return nil
}

func (a *App) observe(ctx context.Context, o logging.Options) (e event.Emitter, done func(context.Context) (warnings []string)) {
	var warnings []string
	o.Path, o.Filter, o.Hide = a.Paths.LogFile, a.readLogSettings().filter, a.used.Text
	logger, file, err := logging.Open(o)
	if err != nil {
		warnings = append(warnings, err.Error())
	}
	a.logFile.Store(file)
	if level := a.readLogSettings().level; level != "" && !logging.IsLevel(level) {
		warnings = append(warnings, fmt.Sprintf("LOKI_LOG_LEVEL is ignored: want off, error, warn, info, debug or trace, not %q", level))
	}
	a.log.Store(logger)
	tracer, err := telemetry.Start(ctx, a.Env.Get, Version)
	if err != nil {
		warnings = append(warnings, err.Error())
	}
	meter, err := telemetry.StartMeter(ctx, a.Env.Get, Version)
	if err != nil && !slices.Contains(warnings, err.Error()) { // about a variable for both
		warnings = append(warnings, err.Error())
	}
	return event.Tee(logging.Emitter(logger), tracer.Emitter(), meter.Emitter()), func(ctx context.Context) []string {
		var both sync.WaitGroup // so that a collector that does not answer is waited for once
		var errs [3]error
		both.Go(func() { errs[0] = tracer.Shutdown(ctx) })
		errs[1] = meter.Shutdown(ctx)
		both.Wait()
		errs[2] = file.Close()
		for _, err := range errs {
			if err != nil {
				warnings = append(warnings, err.Error())
			}
		}
		return warnings
	}
}
