// Package metricstest reads metrics as Prometheus does.
package metricstest

import (
	"bytes"
	"os/exec"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Parse has Prometheus' own parser, and its linter if promtool is installed, read a text. It returns the values of counters
// and gauges, and the counts of histograms, by their names followed by their labels, such as "runs status=done".
func Parse(t *testing.T, text []byte) map[string]float64 {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if promtool, err := exec.LookPath("promtool"); err == nil {
		cmd := exec.CommandContext(t.Context(), promtool, "check", "metrics")
		cmd.Stdin = bytes.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool: %v\n%s", err, out)
		}
	}
	values := make(map[string]float64)
	for name, f := range families {
		for _, m := range f.Metric {
			key := name
			for _, l := range m.Label {
				key += " " + l.GetName() + "=" + l.GetValue()
			}
			values[key] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}

// Check reports which values are not as wanted.
func Check(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for key, n := range want {
		if v, ok := got[key]; !ok || v != n {
			t.Errorf("%s is %v (there: %v), want %v", key, v, ok, n)
		}
	}
}
