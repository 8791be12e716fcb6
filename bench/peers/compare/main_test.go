package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// fake is an engine that takes the same time for every run.
type fake struct {
	self about
	run  map[string]time.Duration
	log  *[]string
}

func (f fake) about() about { return f.self }

func (f fake) ask(name string, runs int) (time.Duration, bool, error) {
	*f.log = append(*f.log, f.self.Name)
	each, ok := f.run[name]
	if each < 0 {
		return 0, false, errors.New("broken")
	}
	return each * time.Duration(runs), ok, nil
}

func TestMeasure(t *testing.T) {
	var log []string
	a := fake{about{Name: "a"}, map[string]time.Duration{"quick": 2 * time.Microsecond, "slow": 2 * time.Second}, &log}
	b := fake{about{Name: "b"}, map[string]time.Duration{"quick": 3 * time.Millisecond, "slow": time.Minute, "broken": -1}, &log}
	for _, tt := range []struct {
		name  string
		want  []result
		turns string // of the last requests
	}{
		{"quick", []result{{true, 2 * time.Microsecond, 7, 0}, {true, 3 * time.Millisecond, 7, 0}}, "ababababababab"},
		{"slow", []result{{true, 2 * time.Second, 5, 0}, {true, time.Minute, 1, 0}}, "abaaaaa"},
		{"unknown", []result{{}, {}}, "ab"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log = nil
			got, err := measure([]engine{a, b}, tt.name)
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %v, %v, want %v", got, err, tt.want)
			}
			if turns := strings.Join(log, ""); !strings.HasSuffix(turns, tt.turns) {
				t.Errorf("asked %s, want it to end in %s", turns, tt.turns)
			}
		})
	}
	if _, err := measure([]engine{a, b}, "broken"); err == nil || !strings.Contains(err.Error(), "b: broken") {
		t.Errorf("got error %v, want b's", err)
	}
}

func TestMarkdown(t *testing.T) {
	tb := &table{
		sides: []engine{
			fake{self: about{Name: "A", Version: "v1", Runtime: "x", Durable: "a file"}},
			fake{self: about{Name: "B", Version: "v2", Runtime: "y", Without: "B forgets."}},
		},
		rows: []row{
			{"c", []result{{true, 900, 7, 0.09}, {true, 12345, 7, 0.12}}},
			{"c/durable", []result{{true, 20 * time.Millisecond, 7, 0}, {}}},
			{"d", []result{{}, {true, 11 * time.Second, 1, 0}}},
		},
		memory:  []memoryRow{{"c", []int64{12_400_000, 1_600_000_000}}, {"c/durable", []int64{30_000_000, 0}}},
		machine: "a computer",
		date:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	want := `| case | A | B | ratio |
|---|--:|--:|--:|
| c | 900 ns | 12.3 µs ±12% | 14× |
| c, checkpoints | 20.0 ms | - [1] | - |
| d | - | 11.0 s [2] | - |

[1] B forgets.  
[2] One run, not the median of several.  
Times are medians of one run, after warm-up, by each engine's own clock; the engines took turns. ± is half the distance of the quartiles, where it is 10% or more. The ratio is how many times A's time the others take, in the order of the columns.

| peak memory | A | B |
|---|--:|--:|
| c | 12 MB | 1600 MB |
| c, checkpoints | 30 MB | - |

The most memory that a new process had (resident set), after one run of the case.

- A v1, x; checkpoints: a file
- B v2, y
- a computer; 2026-01-02 03:04 UTC
`
	if got := tb.markdown(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPeak(t *testing.T) {
	for status, want := range map[string]int64{"VmPeak:\t  900 kB\nVmHWM:\t   12 kB\nVmRSS:\t 10 kB\n": 12288, "": 0, "VmHWM: much": 0} {
		if got := peak(status); got != want {
			t.Errorf("%q: %d bytes, want %d", status, got, want)
		}
	}
}

func TestInsert(t *testing.T) {
	got, err := insert("a\n<!-- peers: begin -->\nold\n<!-- peers: end -->\nz\n", "new\n")
	if want := "a\n<!-- peers: begin -->\nnew\n<!-- peers: end -->\nz\n"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := insert("no marks", "new\n"); err == nil {
		t.Error("a document without marks is accepted")
	}
}
