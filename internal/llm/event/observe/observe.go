// Package observe writes the events of a program to its log file and, if the OTEL_* variables ask for it, sends traces and metrics.
package observe

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"loki/internal/llm/event"
	"loki/internal/llm/event/logging"
	"loki/internal/llm/event/telemetry"
)

// Settings are what the environment says of the log.
type Settings struct{ Level, Filter string }

// ReadSettings reads LOKI_LOG_LEVEL and LOKI_LOG_FILTER. A level such as provider=trace is a filter. Without both, the entries of
// RUST_LOG about this program are the filter, such as loki=debug or loki::graph=debug.
func ReadSettings(getenv func(string) string) Settings {
	s := Settings{getenv("LOKI_LOG_LEVEL"), getenv("LOKI_LOG_FILTER")}
	if strings.ContainsAny(s.Level, "=,") {
		s.Filter, s.Level = strings.Trim(s.Filter+","+s.Level, ","), ""
	}
	if s != (Settings{}) {
		return s
	}
	for entry := range strings.SplitSeq(getenv("RUST_LOG"), ",") {
		if entry = strings.TrimSpace(entry); entry == "loki" {
			entry = "loki=trace"
		}
		if strings.HasPrefix(entry, "loki=") || strings.HasPrefix(entry, "loki::") {
			s.Filter = strings.Trim(s.Filter+","+entry, ",")
		}
	}
	return s
}

// Observer has the log of a program. Its methods may be called from several goroutines.
type Observer struct {
	Getenv  func(string) string
	Version string // of the program

	log  atomic.Pointer[slog.Logger]  // nil before Start
	file atomic.Pointer[logging.File] // likewise
}

// Log returns the logger that Start has opened. Before, nothing is logged.
func (o *Observer) Log() *slog.Logger {
	return cmp.Or(o.log.Load(), slog.New(slog.DiscardHandler))
}

// Silent reports whether nothing is logged.
func (o *Observer) Silent() bool {
	return logging.ParseLevel(ReadSettings(o.Getenv).Level) == logging.LevelOff
}

// SetLevel has the log hold entries of a level, unless the environment says another one.
func (o *Observer) SetLevel(level string) error {
	f := o.file.Load()
	if f == nil {
		return nil
	}
	s := ReadSettings(o.Getenv)
	return f.SetLevel(cmp.Or(s.Level, level), s.Filter)
}

// Start returns an emitter for what is to be observed. What the environment says of the log counts more than the options.
// The caller calls done when the work is over; it returns what the user should be warned of.
func (o *Observer) Start(ctx context.Context, to logging.Options) (e event.Emitter, done func(context.Context) (warnings []string)) {
	var warnings []string
	s := ReadSettings(o.Getenv)
	to.Level, to.Filter = cmp.Or(s.Level, to.Level), s.Filter
	logger, file, err := logging.Open(to)
	if err != nil {
		warnings = append(warnings, err.Error())
	}
	o.file.Store(file)
	if s.Level != "" && !logging.IsLevel(s.Level) {
		warnings = append(warnings, fmt.Sprintf("LOKI_LOG_LEVEL is ignored: want off, error, warn, info, debug or trace, not %q", s.Level))
	}
	o.log.Store(logger)
	tracer, err := telemetry.Start(ctx, o.Getenv, o.Version)
	if err != nil {
		warnings = append(warnings, err.Error())
	}
	meter, err := telemetry.StartMeter(ctx, o.Getenv, o.Version)
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
