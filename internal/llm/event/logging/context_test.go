package logging_test

import (
	"strings"
	"testing"

	"loki/internal/llm/event/logging"
	"loki/internal/llm/event/redact"
)

// TestSecretsOfWork logs what work does that has secrets, inside of other work that has some, in both forms of the log.
func TestSecretsOfWork(t *testing.T) {
	for _, json := range []bool{false, true} {
		logger, lines := open(t, logging.Options{JSON: json, Hide: func(text string) string { return strings.ReplaceAll(text, "hunter-zero", "***ZERO***") }})
		var outer, inner redact.Secrets
		outer.Add("ONE", "hunter-one")
		ctx := inner.In(outer.In(t.Context()))
		inner.Add("TWO", "hunter-two")
		logger.InfoContext(ctx, "hunter-zero, hunter-one, hunter-two", "body", "hunter-two and hunter-one")
		logger.Info("hunter-two of other work")
		got := strings.Join(lines(), "\n")
		for _, want := range []string{"***ZERO***, ***ONE***, ***TWO***", "***TWO*** and ***ONE***", "hunter-two of other work"} {
			if !strings.Contains(got, want) {
				t.Errorf("json %t: %q is not in %s", json, want, got)
			}
		}
	}
}
