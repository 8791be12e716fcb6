package main

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// table is the outcome of a comparison. The first side is the one that the others are
// compared with.
type table struct {
	sides   []engine
	rows    []row
	memory  []memoryRow
	machine string
	date    time.Time
}

type row struct {
	name    string
	results []result // by side
}

func (t *table) markdown() string {
	var b strings.Builder
	var notes []string
	note := func(format string, args ...any) string {
		text := fmt.Sprintf(format, args...)
		i := slices.Index(notes, text)
		if i < 0 {
			i = len(notes)
			notes = append(notes, text)
		}
		return fmt.Sprintf(" [%d]", i+1)
	}
	b.WriteString("| case |")
	for _, s := range t.sides {
		fmt.Fprintf(&b, " %s |", s.about().Name)
	}
	b.WriteString(" ratio |\n|---|" + strings.Repeat("--:|", len(t.sides)+1) + "\n")
	for _, r := range t.rows {
		fmt.Fprintf(&b, "| %s |", caseTitle(r.name))
		for i, res := range r.results {
			self := t.sides[i].about()
			fmt.Fprintf(&b, " %s", res.text())
			switch {
			case !res.has && self.Without != "":
				b.WriteString(note("%s", self.Without))
			case res.samples == 1:
				b.WriteString(note("One run, not the median of several."))
			}
			b.WriteString(" |")
		}
		fmt.Fprintf(&b, " %s |\n", ratios(r.results))
	}
	b.WriteString("\n")
	for i, n := range notes {
		fmt.Fprintf(&b, "[%d] %s  \n", i+1, n)
	}
	b.WriteString("Times are medians of one run, after warm-up, by each engine's own clock; the engines took turns. ")
	b.WriteString("± is half the distance of the quartiles, where it is 10% or more. ")
	b.WriteString("The ratio is how many times " + t.sides[0].about().Name + "'s time the others take, in the order of the columns.\n\n")
	b.WriteString(t.memoryTable())
	for _, s := range t.sides {
		a := s.about()
		fmt.Fprintf(&b, "- %s %s, %s", a.Name, a.Version, a.Runtime)
		if a.Durable != "" {
			fmt.Fprintf(&b, "; checkpoints: %s", a.Durable)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "- %s; %s\n", t.machine, t.date.UTC().Format("2006-01-02 15:04 UTC"))
	return b.String()
}

// text is the median, with the spread if that is a tenth of it or more; "-" if there is
// none.
func (r result) text() string {
	switch {
	case !r.has:
		return "-"
	case r.spread >= 0.1:
		return fmt.Sprintf("%s ±%.0f%%", duration(r.median), 100*r.spread)
	}
	return duration(r.median)
}

// duration is d with three digits.
func duration(d time.Duration) string {
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < time.Millisecond:
		return digits(d, time.Microsecond) + " µs"
	case d < time.Second:
		return digits(d, time.Millisecond) + " ms"
	}
	return digits(d, time.Second) + " s"
}

func digits(d, unit time.Duration) string {
	x := float64(d) / float64(unit)
	switch {
	case x < 10:
		return fmt.Sprintf("%.2f", x)
	case x < 100:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// ratios are the times of the others, divided by that of the first.
func ratios(results []result) string {
	var parts []string
	for _, r := range results[1:] {
		if !r.has || !results[0].has {
			parts = append(parts, "-")
			continue
		}
		x := float64(r.median) / float64(results[0].median)
		if x < 10 {
			parts = append(parts, fmt.Sprintf("%.1f×", x))
		} else {
			parts = append(parts, fmt.Sprintf("%.0f×", x))
		}
	}
	return strings.Join(parts, " / ")
}

// insert puts text between two marks of a document.
func insert(document, text string) (string, error) {
	const begin, end = "<!-- peers: begin -->\n", "<!-- peers: end -->\n"
	before, rest, ok := strings.Cut(document, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("the marks %q and %q are not in the document", begin, end)
	}
	return before + begin + text + end + after, nil
}

// machine describes the computer, as far as it is known.
func machine() string {
	model := "unknown processor"
	info, _ := os.ReadFile("/proc/cpuinfo") // Linux only
	for line := range strings.Lines(string(info)) {
		if name, found := strings.CutPrefix(line, "model name"); found {
			model = strings.TrimSpace(strings.TrimLeft(name, "\t :"))
			break
		}
	}
	load, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("%s/%s, %d CPUs (%s), load before %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), model, cmp.Or(first, "unknown"))
}
