package ledger_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"loki/internal/llm/chat"
	"loki/internal/llm/engine/ledger"
)

func TestSum(t *testing.T) {
	now := time.Date(2026, 11, 21, 23, 30, 0, 0, time.FixedZone("", 3600))
	l := ledger.Ledger{Dir: filepath.Join(t.TempDir(), "usage"), Now: func() time.Time { return now }}
	if s, err := l.Sum(7); err != nil || s.Calls != 0 || s.Models != nil {
		t.Errorf("at first: %+v, %v", s, err)
	}
	add := func(model string, u chat.Usage) {
		t.Helper()
		if err := l.Add(model, u); err != nil {
			t.Fatal(err)
		}
	}
	add("a", chat.Usage{InputTokens: 10, OutputTokens: 1, Cost: 0.5})
	add("a", chat.Usage{})
	now = now.Add(time.Hour) // the next day
	add("a", chat.Usage{InputTokens: 20, CachedInputTokens: 5, OutputTokens: 2, Cost: 0.25})
	add("b", chat.Usage{InputTokens: 3, Cost: 1})
	add("c", chat.Usage{InputTokens: 4, CostUnknown: true})
	file := filepath.Join(l.Dir, "2026-11-22.jsonl")
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("{\"at\": \n\n[]\n{\"model\":"); err != nil { // the end of a full disk
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	today, err := l.Sum(1)
	if err != nil || today.Calls != 3 || today.Total() != 29 || today.Cost != 1.25 || !today.CostUnknown {
		t.Errorf("today %+v, %v", today, err)
	}
	week, err := l.Sum(7)
	if err != nil || week.Calls != 4 || week.Cost != 1.75 {
		t.Errorf("7 days: %+v, %v", week, err)
	}
	var order []string
	for _, m := range week.Models {
		order = append(order, fmt.Sprint(m.Model, m.Calls))
	}
	if fmt.Sprint(order) != "[b1 a2 c1]" {
		t.Errorf("models %v", order)
	}

	now = now.AddDate(0, 0, 100)
	add("a", chat.Usage{InputTokens: 1})
	if files, err := os.ReadDir(l.Dir); err != nil || len(files) != 1 {
		t.Errorf("old days are kept: %v, %v", files, err)
	}
}

func TestSeveralWriters(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { // a Ledger of its own, as other processes have
			l := ledger.Ledger{Dir: dir}
			for range 50 {
				if err := l.Add("m", chat.Usage{InputTokens: 1}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if s, err := (ledger.Ledger{Dir: dir}).Sum(2); err != nil || s.InputTokens != 400 {
		t.Errorf("%+v, %v", s, err)
	}
}

func FuzzSum(f *testing.F) {
	f.Add([]byte(`{"at":"2026-11-22T00:00:00Z","model":"m","input_tokens":1,"output_tokens":2}` + "\n"))
	f.Add([]byte("{\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
		l := ledger.Ledger{Dir: t.TempDir(), Now: func() time.Time { return now }}
		if err := os.WriteFile(filepath.Join(l.Dir, "2026-11-22.jsonl"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Sum(1); err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	l := ledger.Ledger{Dir: b.TempDir()}
	for b.Loop() {
		if err := l.Add("openai:gpt-5", chat.Usage{InputTokens: 1200, OutputTokens: 300, Cost: 0.01}); err != nil {
			b.Fatal(err)
		}
	}
}
