// Command compare times graph engines against each other and prints a Markdown table.
//
// A side is the program of one engine. A case is a graph that all sides have under the
// same name. A request is a case's name and a number of runs, and its answer how long
// they took; the clock is the side's own, so that neither starting the program nor
// talking to it is measured.
//
// All sides stay alive for the whole comparison and are asked in turns, one request at
// a time: what slows the machine down for a while slows down all of them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"
)

// names are the cases in the order of the table. Each is also there with "/durable".
var names = []string{
	"chain_3", "fanout_5", "burst_10000", "chain_10", "chain_1000",
	"react_agent_10", "react_agent_100", "subgraph_10", "subgraph_100",
	"loop_100", "choose_5_of_10", "map_chains_100",
	"wide_state_25x300", "wide_state_15x600", "wide_state_9x1200",
}

func main() {
	dir := flag.String("dir", "", "directory with the sides: loki, eino and langgraph/main.mjs")
	only := flag.String("cases", "*", "cases to run, as a shell pattern without the slash")
	out := flag.String("o", "", "file to write the table to as well")
	doc := flag.String("doc", "", "document to put the table into, between its marks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *dir, *only, *out, *doc); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// engines returns the programs of the engines.
func engines(ctx context.Context, dir string) []*exec.Cmd {
	return []*exec.Cmd{
		exec.CommandContext(ctx, filepath.Join(dir, "loki")),
		exec.CommandContext(ctx, "node", "--max-old-space-size=8192", filepath.Join(dir, "langgraph", "main.mjs")),
		exec.CommandContext(ctx, filepath.Join(dir, "eino")),
	}
}

func run(ctx context.Context, dir, only, out, doc string) error {
	var sides []engine
	for _, p := range append(engines(ctx, dir), exec.CommandContext(ctx, filepath.Join(dir, "loki"), "sqlite")) {
		s, err := start(p)
		if err != nil {
			return fmt.Errorf("starting %s: %w", p.Path, err)
		}
		defer s.stop()
		sides = append(sides, s)
	}
	t := &table{sides: sides, machine: machine(), date: time.Now()}
	for _, suffix := range []string{"", "/durable"} {
		for _, name := range names {
			if ok, err := filepath.Match(only, name); err != nil {
				return err
			} else if !ok {
				continue
			}
			begin := time.Now()
			results, err := measure(sides, name+suffix)
			if err != nil {
				return fmt.Errorf("%s: %w", name+suffix, err)
			}
			fmt.Fprintf(os.Stderr, "%-28s %6.1fs\n", name+suffix, time.Since(begin).Seconds())
			t.rows = append(t.rows, row{name + suffix, results})
		}
		for _, name := range memoryNames {
			if ok, _ := filepath.Match(only, name); !ok {
				continue
			}
			r := memoryRow{name: name + suffix}
			for _, p := range engines(ctx, dir) {
				n, err := memory(p, r.name)
				if err != nil {
					return fmt.Errorf("memory of %s in %s: %w", r.name, p.Path, err)
				}
				r.bytes = append(r.bytes, n)
			}
			t.memory = append(t.memory, r)
		}
	}
	text := t.markdown()
	fmt.Print(text)
	if out != "" {
		if err := os.WriteFile(out, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if doc == "" {
		return nil
	}
	old, err := os.ReadFile(doc)
	if err != nil {
		return err
	}
	page, err := insert(string(old), text)
	if err != nil {
		return fmt.Errorf("%s: %w", doc, err)
	}
	return os.WriteFile(doc, []byte(page), 0o644)
}
