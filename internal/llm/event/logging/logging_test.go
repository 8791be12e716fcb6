package logging_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"loki/internal/base/value"
	"loki/internal/llm/event/logging"
)

var noon = time.Date(2026, 11, 21, 13, 0, 0, 7_999_999, time.FixedZone("CET", 3600))

// open returns a logger on a new file, and a function that closes it and returns its
// lines.
func open(t *testing.T, o logging.Options) (*slog.Logger, func() []string) {
	t.Helper()
	o.Path = filepath.Join(t.TempDir(), "cache", "loki", "loki.log")
	o.Thread = 42
	o.Now = func() time.Time { return noon }
	logger, closer, err := logging.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return logger, func() []string {
		t.Helper()
		if err := closer.Close(); err != nil {
			t.Error(err)
		}
		data, err := os.ReadFile(o.Path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	}
}

func TestLineFormat(t *testing.T) {
	logger, lines := open(t, logging.Options{Level: "trace"})
	logger.Info("hello")
	logger.With("a", 1).WithGroup("g").With("b", "two words").Warn("x", "c", "", slog.Group("h", "d", time.Second))
	logger.Log(t.Context(), logging.LevelTrace, "two\nlines\x1b[31m", "err", errors.New(`a "b"`))
	logger.Debug("tab\t")
	logger.Error("bad")
	got := lines()
	want := []string{
		`INFO hello`,
		`WARN x a=1 g.b="two words" g.c="" g.h.d=1s`,
		`TRACE two\nlines\x1b[31m err="a \"b\""`,
		`DEBUG tab\t`,
		`ERROR bad`,
	}
	if len(got) != len(want) {
		t.Fatalf("got %d lines: %q", len(got), got)
	}
	shape := regexp.MustCompile(`^2026-11-21 12:00:00\.007 <42> \[([A-Z]+)\] event/logging_test/logging_test\.go:\d+ - (.*)$`)
	for i, line := range got {
		m := shape.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("line %q has another format", line)
		} else if text := m[1] + " " + m[2]; text != want[i] {
			t.Errorf("got  %s\nwant %s", text, want[i])
		}
		parsed, ok := logging.Parse(line)
		if !ok || parsed.Message != m[2] || parsed.Thread != "42" || !parsed.Time.Equal(noon.Truncate(time.Millisecond)) {
			t.Errorf("Parse(%q) = %+v, %v", line, parsed, ok)
		}
	}
}

func TestNothingIsCreatedBeforeTheFirstRecord(t *testing.T) {
	for _, tt := range []struct{ name, level, filter string }{
		{name: "below_the_level", level: "error"},
		{name: "off", level: "OFF", filter: "graph=trace"},
		{name: "other_package", filter: "graph"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			logger, closer, err := logging.Open(logging.Options{Path: filepath.Join(dir, "a", "loki.log"), Level: tt.level, Filter: tt.filter})
			if err != nil {
				t.Fatal(err)
			}
			logger.Warn("not kept")
			if err := closer.Close(); err != nil {
				t.Error(err)
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 0 {
				t.Errorf("%s was created", entries[0].Name())
			}
		})
	}
}

func TestFileModeAndAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "loki.log")
	for i := range 2 {
		logger, closer, err := logging.Open(logging.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		logger.Info("round", "i", i)
		if err := closer.Close(); err != nil {
			t.Fatal(err)
		}
		logger.Info("after Close")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "\n"); n != 2 {
		t.Errorf("%d lines, want 2:\n%s", n, data)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode().Perm())
	}
}

func TestFallback(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	logger, closer, err := logging.Open(logging.Options{Path: filepath.Join(blocked, "loki.log"), Fallback: &stderr})
	if err != nil {
		t.Fatal(err)
	}
	if stderr.Len() > 0 {
		t.Errorf("before the first record: %s", &stderr)
	}
	logger.Info("one")
	logger.Info("two")
	if err := closer.Close(); err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "logging here: mkdir ") || !strings.HasSuffix(lines[2], " - two") {
		t.Errorf("got %q", lines)
	}
}

func TestLevels(t *testing.T) {
	all := []slog.Level{logging.LevelTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	for _, tt := range []struct {
		level string
		kept  int
	}{
		{"off", 0},
		{"error", 1},
		{"Warn", 2},
		{"INFO", 3},
		{"", 3},
		{"loud", 3},
		{"debug", 4},
		{" trace ", 5},
	} {
		t.Run("level_"+tt.level, func(t *testing.T) {
			logger, lines := open(t, logging.Options{Level: tt.level})
			for _, l := range all {
				logger.Log(t.Context(), l, "x")
			}
			if got := len(lines()); got != tt.kept {
				t.Errorf("%d records were kept, want %d", got, tt.kept)
			}
		})
	}
}

func TestFilter(t *testing.T) {
	for _, tt := range []struct {
		name, level, filter string
		want                string // package:level letter of the records that are kept
	}{
		{name: "none", want: "graph:i graph/node:i provider:i graphics:i"},
		{name: "levels", filter: "graph=debug, provider=error", want: "graph:d graph:i graph/node:d graph/node:i graphics:i"},
		{name: "one_package", filter: "graph", want: "graph:i graph/node:i"},
		{name: "one_package_at_level", filter: "graph", level: "debug", want: "graph:d graph:i graph/node:d graph/node:i"},
		{name: "old_spelling", filter: "loki::graph::node=debug", want: "graph:i graph/node:d graph/node:i provider:i graphics:i"},
		{name: "import_path", filter: "loki/internal/provider=off", want: "graph:i graph/node:i graphics:i"},
		{name: "below_a_wing", filter: "node=debug", want: "graph:i graph/node:d graph/node:i provider:i graphics:i"},
		{name: "longest_name_wins", filter: "graph=off,graph/node=debug", want: "graph/node:d graph/node:i provider:i graphics:i"},
		{name: "rest", filter: "error,provider=info", want: "provider:i"},
		{name: "package_and_rest", filter: "debug,graph", want: "graph:i graph/node:i provider:d provider:i graphics:d graphics:i"},
		{name: "trace", level: "off", filter: "graph=trace", want: ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			logger, lines := open(t, logging.Options{Level: tt.level, Filter: tt.filter})
			for _, pkg := range []string{"graph", "graph/node", "provider", "graphics"} {
				named := logger.With("package", pkg)
				named.Debug(pkg + ":d")
				named.Info(pkg + ":i")
			}
			var got []string
			for _, line := range lines() {
				l, _ := logging.Parse(line)
				got = append(got, l.Message)
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("kept %s\nwant %s", text, tt.want)
			}
		})
	}
}

// TestFilterByOrigin shows that the place of the call decides where nothing names a
// package: this file is in package logging_test.
func TestFilterByOrigin(t *testing.T) {
	logger, lines := open(t, logging.Options{Filter: "logging_test=debug,error"})
	logger.Debug("mine")
	logger.Info("other", "package", "graph")
	got := lines()
	if len(got) != 1 || !strings.HasSuffix(got[0], " - mine") {
		t.Errorf("kept %q", got)
	}
}

func TestFilterError(t *testing.T) {
	for _, tt := range []struct{ name, filter, want string }{
		{"level", "graph=loud", `log filter: "graph=loud": "loud" is not one of off, error, warn, info, debug, trace`},
		{"package", "=debug", `log filter: "=debug" names no package`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "loki.log")
			logger, closer, err := logging.Open(logging.Options{Path: path, Filter: tt.filter})
			if err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
			logger.Info("works all the same")
			if err := closer.Close(); err != nil {
				t.Error(err)
			}
			if data, _ := os.ReadFile(path); !strings.Contains(string(data), "works") {
				t.Errorf("the file has %q", data)
			}
		})
	}
}

func TestSecretsAreHidden(t *testing.T) {
	const secret = "hunter2hunter2"
	state := value.ObjectOf(
		value.Member{Name: "api_key", Value: value.Of("plainkey")},
		value.Member{Name: "list", Value: value.ListOf(value.ObjectOf(value.Member{Name: "Password", Value: value.Of("plainkey")}).Value()).Value()},
		value.Member{Name: "text", Value: value.Of("kept")},
	).Value()
	for _, tt := range []struct {
		name string
		log  func(*slog.Logger)
		keep string // has to be there still
	}{
		{"key", func(l *slog.Logger) { l.Info("m", "api_key", "plainkey", "n", 1) }, "n=1"},
		{"key_of_logger", func(l *slog.Logger) { l.With("Authorization", "plainkey").Info("kept") }, "kept"},
		{"key_in_group", func(l *slog.Logger) { l.Info("m", slog.Group("g", "x-api-key", "plainkey"), "a", "kept") }, "kept"},
		{"counts_are_no_secrets", func(l *slog.Logger) { l.Info("m", "input_tokens", 1200) }, "input_tokens=1200"},
		{"configured_in_message", func(l *slog.Logger) { l.Info("GET /?q=" + secret + "&kept") }, "kept"},
		{"configured_in_value", func(l *slog.Logger) { l.Info("m", "body", "a "+secret+" kept") }, "kept"},
		{"configured_in_error", func(l *slog.Logger) { l.Info("m", "err", fmt.Errorf("kept: %s", secret)) }, "kept"},
		{"headers", func(l *slog.Logger) {
			l.Info("m", "headers", map[string][]string{"Authorization": {"plainkey"}, "Accept": {"kept"}})
		}, "kept"},
		{"strings", func(l *slog.Logger) {
			l.Info("m", "env", map[string]string{"OPENAI_API_KEY": "plainkey", "HOME": "/kept"})
		}, "/kept"},
		{"state", func(l *slog.Logger) { l.Info("m", "state", state) }, "kept"},
		{"bearer", func(l *slog.Logger) { l.Info("sent Authorization: Bearer plainkey.plainkey kept") }, "kept"},
		{"query", func(l *slog.Logger) { l.Info("GET https://host/?alt=sse&key=plainkey&kept") }, "kept"},
		{"json", func(l *slog.Logger) { l.Info(`{"api_key": "plainkey", "a": "kept"}`) }, "kept"},
		{"shape", func(l *slog.Logger) { l.Info("used sk-plainkeyplainkeyplainkey kept") }, "kept"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			logger, lines := open(t, logging.Options{Hide: func(text string) string { return strings.ReplaceAll(text, secret, "***NAME***") }})
			tt.log(logger)
			line := strings.Join(lines(), "\n")
			for _, bad := range []string{"plainkey", "hunter2"} {
				if strings.Contains(line, bad) {
					t.Errorf("the secret is in %s", line)
				}
			}
			if !strings.Contains(line, tt.keep) {
				t.Errorf("%q is missing in %s", tt.keep, line)
			}
		})
	}
}

func TestLinesDoNotMix(t *testing.T) {
	logger, lines := open(t, logging.Options{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				logger.Info(strings.Repeat("x", 500))
			}
		})
	}
	wg.Wait()
	got := lines()
	if len(got) != 400 {
		t.Errorf("%d lines, want 400", len(got))
	}
	for _, line := range got {
		if l, ok := logging.Parse(line); !ok || len(l.Message) != 500 {
			t.Fatalf("broken line %q", line)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	const good = "2026-11-21 12:00:00.007 <1> [INFO] a/b.go:3 - x"
	if _, ok := logging.Parse(good); !ok {
		t.Fatalf("%q was refused", good)
	}
	for name, line := range map[string]string{
		"empty":     "",
		"other":     "npm warn deprecated",
		"time":      strings.Replace(good, "12:", "25:", 1),
		"thread":    strings.Replace(good, "<1>", "<>", 1),
		"level":     strings.Replace(good, "INFO", "LOUD", 1),
		"lower":     strings.Replace(good, "INFO", "info", 1),
		"file":      strings.Replace(good, "a/b.go", "", 1),
		"number":    strings.Replace(good, ":3", ":x", 1),
		"negative":  strings.Replace(good, ":3", ":-3", 1),
		"separator": strings.Replace(good, " - ", " ", 1),
	} {
		t.Run(name, func(t *testing.T) {
			if l, ok := logging.Parse(line); ok {
				t.Errorf("Parse(%q) = %+v", line, l)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("2026-11-21 12:00:00.007 <1> [INFO] a/b.go:3 - x")
	f.Add("2026-11-21 12:00:00.007 <1> [OFF] a:b:3 -  - ")
	f.Add("2026-11-21 12:00:00.007")
	f.Fuzz(func(t *testing.T, text string) {
		l, ok := logging.Parse(text)
		if !ok {
			return
		}
		again := fmt.Sprintf("%s <%s> [%s] %s:%d - %s", l.Time.Format("2006-01-02 15:04:05.000"), l.Thread, text[strings.Index(text, "> [")+3:strings.Index(text, "] ")], l.File, l.Line, l.Message)
		if again != text {
			t.Errorf("%q parsed as %+v", text, l)
		}
	})
}

func FuzzParseFilter(f *testing.F) {
	for _, s := range []string{"graph=debug,provider=trace", "loki::graph", "=", ",,", "warn,a=off"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := logging.ParseFilter(text, slog.LevelInfo); err != nil && !strings.HasPrefix(err.Error(), "log filter: ") {
			t.Errorf("error %v", err)
		}
	})
}

func BenchmarkInfo(b *testing.B) {
	logger, closer, err := logging.Open(logging.Options{Path: filepath.Join(b.TempDir(), "loki.log")})
	if err != nil {
		b.Fatal(err)
	}
	defer closer.Close()
	for b.Loop() {
		logger.Info("run started at plan", "run", "0198c2a4")
	}
}
